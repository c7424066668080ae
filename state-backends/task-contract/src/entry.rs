//! Index entries of tasks for the lookups of [`Rows`](crate::Rows), for stores that keep tasks in
//! memory: one ordered set holds those of all indexes.

use interval_queue_contract::Micros;

use crate::{Key, Kind, Rank, State, Task, TaskId, WorkerId};

/// An index entry: its columns, then the id of the task.
#[allow(missing_docs, reason = "each is named after its lookup in `Rows`")]
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Entry {
    Name(Key, TaskId),
    Added(Rank),
    Scheduled(Rank),
    Ready(Kind, i32, Rank),
    Leased(WorkerId, TaskId),
    LeasedOfKey(Key, TaskId),
    ToStop(WorkerId, TaskId),
    Holder(Key, TaskId),
    OrderedHolder(Key, TaskId),
    ReadyHolder(Key, Rank),
    ReadyHolderOfKind(Kind, TaskId),
    Competitor(Key, Rank),
    KeyInUse(Key, TaskId),
    Unserved(Kind, TaskId),
    Deadline(Micros, TaskId),
    Unnotified(TaskId),
    Ended(State, Micros, TaskId),
    ByAdded(Micros, TaskId),
    ByEnded(Micros, TaskId),
}

impl Entry {
    /// The entries of a task.
    pub fn of(x: &Task) -> Vec<Self> {
        let id = x.id;
        let mut entries = Vec::with_capacity(4);
        entries.push(Self::ByAdded(x.added, id));
        entries.extend(x.ended.map(|ended| Self::ByEnded(ended, id)));
        if let Some(unique) = x.unique.as_ref().filter(|_| x.holds_name) {
            entries.push(Self::Name(unique.name.clone(), id));
        }
        match x.state {
            State::Added => entries.push(Self::Added(x.order())),
            State::Scheduled => entries.push(Self::Scheduled(x.start_order())),
            State::Ready => entries.push(Self::Ready(x.kind.clone(), x.priority, x.order())),
            State::Leased => entries.extend(x.worker.map(|worker| Self::Leased(worker, id))),
            _ => {}
        }
        if let Some(key) = &x.key {
            if x.holds_key {
                entries.push(Self::Holder(key.clone(), id));
                if x.ordered {
                    entries.push(Self::OrderedHolder(key.clone(), id));
                }
                if x.state == State::Ready {
                    entries.push(Self::ReadyHolder(key.clone(), x.key_order()));
                    entries.push(Self::ReadyHolderOfKind(x.kind.clone(), id));
                }
            }
            if x.state == State::Leased {
                entries.push(Self::LeasedOfKey(key.clone(), id));
            }
            if x.state == State::Blocked && !x.unserved {
                entries.push(Self::Competitor(key.clone(), x.key_order()));
            }
            if x.holds_key || x.state == State::Blocked {
                entries.push(Self::KeyInUse(key.clone(), id));
            }
            if x.unserved {
                entries.push(Self::Unserved(x.kind.clone(), id));
            }
        }
        if let (Some(worker), Some(_), State::Leased) = (x.worker, x.stop, x.state) {
            entries.push(Self::ToStop(worker, id));
        }
        if let (Some(deadline), None) = (x.deadline, x.stop)
            && !x.state.is_ended()
        {
            entries.push(Self::Deadline(deadline, id));
        }
        if x.state.is_ended() {
            if !x.notified {
                entries.push(Self::Unnotified(id));
            } else if !x.retained {
                entries.extend(x.ended.map(|ended| Self::Ended(x.state, ended, id)));
            }
        }
        entries
    }

    /// The task of this entry.
    pub fn id(&self) -> TaskId {
        match *self {
            Self::Added(rank)
            | Self::Scheduled(rank)
            | Self::Ready(_, _, rank)
            | Self::ReadyHolder(_, rank)
            | Self::Competitor(_, rank) => rank.id,
            Self::Name(_, id)
            | Self::Leased(_, id)
            | Self::LeasedOfKey(_, id)
            | Self::ToStop(_, id)
            | Self::Holder(_, id)
            | Self::OrderedHolder(_, id)
            | Self::ReadyHolderOfKind(_, id)
            | Self::KeyInUse(_, id)
            | Self::Unserved(_, id)
            | Self::Deadline(_, id)
            | Self::Unnotified(id)
            | Self::Ended(_, _, id)
            | Self::ByAdded(_, id)
            | Self::ByEnded(_, id) => id,
        }
    }
}
