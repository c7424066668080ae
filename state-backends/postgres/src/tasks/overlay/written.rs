//! What the rules have written: of each row what was stored before, and what is to be stored.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use interval_queue_contract::Micros;
use interval_queue_task_contract::{
    Counted, Edge, Event, Json, Key, KeyRow, Kind, KindRow, Presence, Queue, Schedule, Task, TaskId, Took,
    WorkerId,
};

/// A row before and after a command; none: there is no such row.
#[derive(Clone, Debug)]
pub(crate) struct Change<T> {
    pub(crate) before: Option<T>,
    pub(crate) after: Option<T>,
}

/// All that a command has written.
#[derive(Clone, Debug, Default)]
pub(crate) struct Written {
    pub(crate) queue: Option<Queue>,
    pub(crate) tasks: BTreeMap<TaskId, Change<Task>>,
    pub(crate) payloads: BTreeMap<TaskId, Option<Json>>,
    pub(crate) results: BTreeMap<TaskId, Option<Json>>,
    /// By upstream and downstream.
    pub(crate) edges: BTreeMap<(TaskId, TaskId), Change<Edge>>,
    pub(crate) presences: BTreeMap<WorkerId, Option<Presence>>,
    pub(crate) kinds: BTreeMap<Kind, KindRow>,
    pub(crate) keys: BTreeMap<Key, Option<KeyRow>>,
    pub(crate) schedules: BTreeMap<Key, Option<Schedule>>,
    pub(crate) counts: BTreeMap<(Kind, Counted), i64>,
    pub(crate) times: BTreeMap<(Kind, Took), u64>,
    /// Times before this hour are forgotten.
    pub(crate) first_hour: Option<u32>,
    pub(crate) events: Vec<Event>,
    /// So many of the events before this instant are forgotten.
    pub(crate) first_event: Option<(Micros, u32)>,
    pub(crate) nudges: bool,
    /// The tasks that have a key, or had it.
    of_key: HashMap<Key, BTreeSet<TaskId>>,
    /// Edges by downstream and upstream.
    upstreams: BTreeSet<(TaskId, TaskId)>,
}

impl Written {
    pub(super) fn put_task(&mut self, before: Option<&Task>, id: TaskId, after: Option<&Task>) {
        for key in [before, after].into_iter().flatten().filter_map(|x| x.key.as_ref()) {
            match self.of_key.get_mut(key) {
                Some(tasks) => _ = tasks.insert(id),
                None => _ = self.of_key.insert(key.clone(), BTreeSet::from([id])),
            }
        }
        match self.tasks.get_mut(&id) {
            Some(change) => change.after = after.cloned(),
            None => {
                _ = self.tasks.insert(id, Change { before: before.cloned(), after: after.cloned() });
            }
        }
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

    /// The tasks that were written; of one key, if one is given.
    pub(super) fn tasks_of<'s>(
        &'s self,
        key: Option<&Key>,
    ) -> Box<dyn Iterator<Item = &'s Change<Task>> + 's> {
        match key {
            None => Box::new(self.tasks.values()),
            Some(key) => {
                let ids = self.of_key.get(key).into_iter().flatten();
                Box::new(ids.filter_map(|id| self.tasks.get(id)))
            }
        }
    }

    /// The tasks that were written, as they are to be stored.
    pub(crate) fn after(&self) -> impl Iterator<Item = &Task> {
        self.tasks.values().filter_map(|change| change.after.as_ref())
    }

    /// How much what was written adds to a number of tasks.
    pub(super) fn more(&self, key: Option<&Key>, counts: impl Fn(&Task) -> bool) -> i64 {
        let one = |x: &Option<Task>| i64::from(x.as_ref().is_some_and(&counts));
        self.tasks_of(key).map(|change| one(&change.after) - one(&change.before)).sum()
    }

    pub(super) fn edges_from(&self, up: TaskId) -> impl Iterator<Item = &Edge> {
        let all = self.edges.range((up, TaskId::FIRST)..=(up, TaskId::LAST));
        all.filter_map(|(_, change)| change.after.as_ref())
    }

    pub(super) fn edges_to(&self, down: TaskId) -> impl Iterator<Item = &Edge> {
        let all = self.upstreams.range((down, TaskId::FIRST)..=(down, TaskId::LAST));
        all.filter_map(|&(down, up)| self.edges.get(&(up, down))?.after.as_ref())
    }

    /// Whether it is new tasks and their edges alone, in a queue that may be new.
    pub(crate) fn is_added(&self) -> bool {
        self.tasks.values().all(|change| change.before.is_none())
            && self.edges.values().all(|change| change.before.is_none())
            && self.presences.is_empty()
            && self.kinds.is_empty()
            && self.keys.is_empty()
            && self.schedules.is_empty()
            && self.results.is_empty()
    }
}
