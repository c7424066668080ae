//! What the rules look for, and what was found.

use std::hash::{Hash, Hasher};

use interval_queue_contract::Micros;
use interval_queue_task_contract::{
    Corrected, Counted, Edge, EdgeState, Event, Json, Key, KeyRow, Kind, KindRow, Presence, Queue, Schedule,
    Selector, State, Task, TaskId, Took, WorkerId,
};

/// One thing to be looked for. Those that give several rows say nothing of how many, nor up to which instant: an
/// [`Ask`] does.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Target {
    /// The row of the queue.
    Queue,
    /// A task by its id.
    Task(TaskId),
    /// The payload of a task.
    Payload(TaskId),
    /// The result of a task.
    Result(TaskId),
    /// The task with this unique name.
    ByName(Key),
    /// By [`Task::order`](interval_queue_task_contract::Task::order).
    Added,
    /// By time and id, up to an instant.
    Scheduled,
    /// The instants of the first ones.
    NextScheduled,
    /// By the same, of these kinds and with at least this priority.
    Ready(Vec<Kind>, Option<i32>),
    /// How many are leased.
    Leased,
    /// How many of this key are.
    LeasedOfKey(Key),
    /// Those of a worker, by id.
    HeldBy(WorkerId),
    /// Of those, the ones to be stopped.
    ToStop(WorkerId),
    /// How many hold a place of this key.
    Holders(Key),
    /// How many of those are ordered.
    OrderedHolders(Key),
    /// Of those that hold a place, the ready ones, the last first.
    LastReadyHolder(Key),
    /// By line and id.
    Line(Key),
    /// How many wait for this key.
    Blocked(Key),
    /// The first key behind this one that is in use.
    NextKey(Option<Key>),
    /// Of this kind, by id.
    Unserved(Kind),
    /// Of this kind, by id.
    ReadyHolders(Kind),
    /// By deadline and id, up to an instant.
    Overdue,
    /// The instants of the first ones.
    NextDeadline,
    /// By id.
    Unnotified,
    /// Those that ended so, by end and id, before an instant.
    Ended(State),
    /// By id.
    Select(Box<Selection>),
    /// Edges from a task to those behind a downstream, by downstream.
    From(TaskId, Option<TaskId>),
    /// The untold ones of those, in this life.
    UnnotifiedFrom(TaskId, u32),
    /// Edges to a task in this state behind an upstream, by upstream.
    To(TaskId, Option<EdgeState>, Option<TaskId>),
    /// The pending edges to a task, by upstream.
    Pending(TaskId),
    /// A worker.
    Presence(WorkerId),
    /// All workers.
    Presences,
    /// The leases of all workers.
    Leases,
    /// A kind.
    Kind(Kind),
    /// All kinds.
    Kinds,
    /// What is said of a key.
    Key(Key),
    /// By key.
    KeysToRebalance,
    /// By key.
    PausedKeys,
    /// A schedule.
    Schedule(Key),
    /// All schedules.
    Schedules,
    /// All that is counted.
    Counts,
    /// The counts that are wrong.
    Miscounted,
    /// How long the runs of a kind waited and took, from this hour on.
    Times(Kind, u32),
    /// Events with higher numbers.
    Events(u64),
    /// The highest number of one.
    LastEvent,
}

/// A selector, and behind which task it selects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Selection {
    pub(crate) selector: Selector,
    pub(crate) after: Option<TaskId>,
}

/// There is one of it in a command.
impl Hash for Selection {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.after.hash(state);
    }
}

/// A look, and how much it is to give.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lookup {
    pub(crate) target: Target,
    /// So many rows at most.
    pub(crate) limit: u32,
    /// Up to this instant, where a look has one.
    pub(crate) until: Micros,
}

impl Lookup {
    pub(crate) fn one(target: Target) -> Self {
        Self { target, limit: 1, until: Micros::ZERO }
    }

    pub(crate) fn some(target: Target, limit: u32) -> Self {
        Self { target, limit, until: Micros::ZERO }
    }

    pub(crate) fn until(target: Target, limit: u32, until: Micros) -> Self {
        Self { target, limit, until }
    }

    /// Whether what was found for another one answers this one, too.
    pub(super) fn is_covered_by(&self, other: &Self) -> bool {
        self.until <= other.until
    }
}

/// When the lease of a worker ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lease {
    pub(crate) worker: WorkerId,
    pub(crate) lease: Micros,
    pub(crate) ends: Micros,
    pub(crate) busy: bool,
    pub(crate) cleared: bool,
}

impl Lease {
    pub(crate) fn of(presence: &Presence) -> Self {
        let &Presence { worker, lease, ends, busy, cleared, .. } = presence;
        Self { worker, lease, ends, busy, cleared }
    }
}

/// What a look has found.
#[derive(Clone, Debug)]
pub(crate) enum LookupResult {
    Queue(Option<Box<Queue>>),
    Task(Option<Box<Task>>),
    Json(Option<Json>),
    Tasks(Vec<Task>),
    Number(u64),
    Instants(Vec<(Micros, TaskId)>),
    Edges(Vec<Edge>),
    Presence(Option<Box<Presence>>),
    Presences(Vec<Presence>),
    Leases(Vec<Lease>),
    NextKey(Option<Key>),
    Kind(Option<KindRow>),
    Kinds(Vec<KindRow>),
    Key(Option<KeyRow>),
    Keys(Vec<KeyRow>),
    Schedule(Option<Box<Schedule>>),
    Schedules(Vec<Schedule>),
    Counts(Vec<(Kind, Counted, u64)>),
    Miscounted(Vec<Corrected>),
    Times(Vec<(Took, u64)>),
    Events(Vec<(u64, Event)>),
}
