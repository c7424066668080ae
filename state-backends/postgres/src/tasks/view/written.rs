//! The rows that the rules have written, in the stored and the new version.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    ops::{Bound, RangeBounds},
    sync::atomic::{AtomicU64, Ordering},
};

use interval_queue_contract::Micros;
use interval_queue_task_contract::{
    Counted, Edge, Event, Json, Key, KeyRow, Kind, KindRow, LogLine, Presence, Queue, Schedule, State, Task,
    TaskId, Took, WorkerId,
    index::{self, Entries, Index, Sort},
};

use super::Target;

/// `None`: there is no such row.
#[derive(Clone, Debug)]
pub(crate) struct Change<T> {
    pub(crate) before: Option<T>,
    pub(crate) after: Option<T>,
}

/// The cost of lookups is proportional to their results: written tasks are indexed like stored
/// ones, and numbers of tasks are maintained.
#[derive(Debug, Default)]
pub(crate) struct Written {
    pub(crate) queue: Option<Queue>,
    tasks: BTreeMap<TaskId, Change<Task>>,
    pub(crate) payloads: BTreeMap<TaskId, Option<Json>>,
    pub(crate) results: BTreeMap<TaskId, Option<Json>>,
    /// Empty: no log.
    pub(crate) logs: BTreeMap<TaskId, Vec<LogLine>>,
    /// By upstream and downstream.
    pub(crate) edges: BTreeMap<(TaskId, TaskId), Change<Edge>>,
    pub(crate) presences: BTreeMap<WorkerId, Option<Presence>>,
    pub(crate) kinds: BTreeMap<Kind, KindRow>,
    pub(crate) keys: BTreeMap<Key, Option<KeyRow>>,
    pub(crate) schedules: BTreeMap<Key, Option<Schedule>>,
    pub(crate) counts: BTreeMap<(Kind, Counted), i64>,
    pub(crate) times: BTreeMap<(Kind, Took), u64>,
    /// Earlier hours are added to their days and deleted; days before the second hour are deleted.
    pub(crate) first_times: Option<(u32, u32)>,
    pub(crate) events: Vec<Event>,
    /// Earlier events are deleted, at most this number.
    pub(crate) first_event: Option<(Micros, u32)>,
    pub(crate) notifies: bool,
    /// Index entries of the new versions.
    entries: Entries,
    /// Change of each number of tasks.
    more: HashMap<Target, i64>,
    /// Pairs of downstream and upstream.
    upstreams: BTreeSet<(TaskId, TaskId)>,
    /// Number of rows that lookups have visited.
    visited: AtomicU64,
}

impl Written {
    pub(super) fn put_task(&mut self, before: Option<&Task>, id: TaskId, after: Option<&Task>) {
        let written = self.tasks.remove(&id);
        let replaced = written.as_ref().map_or(before, |change| change.after.as_ref());
        for target in replaced.into_iter().flat_map(numbers_of) {
            *self.more.entry(target).or_default() -= 1;
        }
        for target in after.into_iter().flat_map(numbers_of) {
            *self.more.entry(target).or_default() += 1;
        }
        self.entries.replace(written.as_ref().and_then(|change| change.after.as_ref()), after);
        let before = written.map_or_else(|| before.cloned(), |change| change.before);
        self.tasks.insert(id, Change { before, after: after.cloned() });
    }

    pub(super) fn put_edge(&mut self, before: Option<&Edge>, ends: (TaskId, TaskId), after: Option<&Edge>) {
        self.upstreams.insert((ends.1, ends.0));
        match self.edges.get_mut(&ends) {
            Some(change) => change.after = after.cloned(),
            None => {
                _ = self.edges.insert(ends, Change { before: before.cloned(), after: after.cloned() });
            }
        }
    }

    fn visit<T>(&self, row: T) -> T {
        self.visited.fetch_add(1, Ordering::Relaxed);
        row
    }

    #[cfg(test)]
    pub(super) fn visited(&self) -> u64 {
        self.visited.load(Ordering::Relaxed)
    }

    pub(crate) fn task(&self, id: TaskId) -> Option<&Change<Task>> {
        self.visit(self.tasks.get(&id))
    }

    /// Sorted by id.
    pub(crate) fn tasks(&self) -> impl Iterator<Item = (TaskId, &Change<Task>)> {
        self.tasks.iter().map(|(&id, change)| self.visit((id, change)))
    }

    pub(crate) fn after(&self) -> impl Iterator<Item = &Task> {
        self.tasks().filter_map(|(_, change)| change.after.as_ref())
    }

    fn tasks_of<'w, C: 'w, O: Sort + 'w>(
        &'w self,
        entries: impl DoubleEndedIterator<Item = &'w (C, O)>,
    ) -> impl DoubleEndedIterator<Item = &'w Task> {
        let ids = entries.map(|(_, order)| self.visit(order.id()));
        ids.filter_map(|id| self.tasks.get(&id)?.after.as_ref())
    }

    /// Up to an instant of the index's order.
    pub(super) fn look<I: Index>(
        &self,
        columns: I::Columns,
        until: Option<Micros>,
    ) -> impl DoubleEndedIterator<Item = &Task> {
        self.tasks_of(self.entries.look::<I>(columns, until))
    }

    pub(super) fn first<I: Index>(&self) -> Option<(Micros, TaskId)> {
        I::all(&self.entries).first().map(|(_, order)| self.visit((order.instant(), order.id())))
    }

    /// In the order of leasing.
    pub(super) fn ready(&self, kinds: &[Kind], at_least: Option<i32>) -> Vec<&Task> {
        let of_kind = |kind: &Kind| {
            let first = (kind.clone(), at_least.unwrap_or(i32::MIN));
            self.tasks_of(self.entries.between::<index::Ready>(first, (kind.clone(), i32::MAX)))
        };
        // Called once per command, after maintenance has made tasks ready.
        let mut ready: Vec<&Task> = kinds.iter().flat_map(of_kind).collect();
        ready.sort_by_key(|task| task.order());
        ready
    }

    /// The last first.
    pub(super) fn last_ready_holders(&self, key: &Key) -> Vec<&Task> {
        let holders = |ordered| self.look::<index::Holder>((key.clone(), ordered, State::Ready), None);
        let mut holders: Vec<&Task> = holders(false).chain(holders(true)).collect();
        holders.sort_by_key(|task| std::cmp::Reverse(task.key_order()));
        holders
    }

    pub(super) fn next_key(&self, after: Option<&Key>) -> Option<Key> {
        self.visit(self.entries.next_key(after))
    }

    pub(super) fn more(&self, target: &Target) -> i64 {
        self.more.get(target).copied().unwrap_or(0)
    }

    /// Sorted by downstream.
    pub(super) fn edges_from(&self, up: TaskId, after: Option<TaskId>) -> impl Iterator<Item = &Edge> {
        let all = self.edges.range(behind(up, after));
        all.filter_map(|(_, change)| self.visit(change).after.as_ref())
    }

    /// Sorted by upstream.
    pub(super) fn edges_to(&self, down: TaskId, after: Option<TaskId>) -> impl Iterator<Item = &Edge> {
        let all = self.upstreams.range(behind(down, after));
        all.filter_map(|&(down, up)| self.visit(self.edges.get(&(up, down))?).after.as_ref())
    }

    /// Only new tasks, their edges and possibly a new queue.
    pub(crate) fn is_added(&self) -> bool {
        self.tasks().all(|(_, change)| change.before.is_none())
            && self.edges.values().all(|change| change.before.is_none())
            && self.presences.is_empty()
            && self.kinds.is_empty()
            && self.keys.is_empty()
            && self.schedules.is_empty()
            && self.results.is_empty()
            && self.logs.is_empty()
    }
}

fn numbers_of(x: &Task) -> Vec<Target> {
    let is_leased = x.state == State::Leased;
    let mut targets = Vec::new();
    if is_leased {
        targets.push(Target::Leased);
    }
    if let Some(key) = &x.key {
        if is_leased {
            targets.push(Target::LeasedOfKey(key.clone()));
        }
        if x.holds_key {
            targets.push(Target::Holders(key.clone()));
        }
        if x.holds_key && x.ordered {
            targets.push(Target::OrderedHolders(key.clone()));
        }
        if x.state == State::Blocked {
            targets.push(Target::Blocked(key.clone()));
        }
    }
    targets
}

/// Pairs that begin with `one`, after a second element.
fn behind(one: TaskId, after: Option<TaskId>) -> impl RangeBounds<(TaskId, TaskId)> {
    let from = after.map_or(Bound::Included((one, TaskId::FIRST)), |after| Bound::Excluded((one, after)));
    (from, Bound::Included((one, TaskId::LAST)))
}
