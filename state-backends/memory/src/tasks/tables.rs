//! The tables of one queue, and the undo log of the current command.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Bound,
};

use interval_queue_task_contract::{
    Counted, Edge, Event, Json, Key, KeyRow, Kind, KindRow, LogLine, Presence, Queue, Schedule, Task, TaskId,
    Took, WorkerId,
    index::{Entries, Sort},
};

/// All rows of a queue. Public for fault injection and a proof; only the rules change them.
#[derive(Clone, Debug, Default)]
pub struct Tables {
    /// The queue's row.
    pub queue: Option<Queue>,
    /// Tasks by id.
    pub tasks: BTreeMap<TaskId, Task>,
    pub(super) entries: Entries,
    pub(super) payloads: BTreeMap<TaskId, Json>,
    pub(super) results: BTreeMap<TaskId, Json>,
    pub(super) logs: BTreeMap<TaskId, Vec<LogLine>>,
    /// Edges by (downstream, upstream).
    pub edges: BTreeMap<(TaskId, TaskId), Edge>,
    /// By (upstream, downstream).
    pub(super) downstreams: BTreeSet<(TaskId, TaskId)>,
    /// Workers by id.
    pub presences: BTreeMap<WorkerId, Presence>,
    /// Kinds by name.
    pub kinds: BTreeMap<Kind, KindRow>,
    /// Keys by name.
    pub keys: BTreeMap<Key, KeyRow>,
    pub(super) schedules: BTreeMap<Key, Schedule>,
    /// Counters by kind.
    pub counts: BTreeMap<(Kind, Counted), i64>,
    /// Waits and durations of runs.
    pub(super) times: BTreeMap<(Kind, Took), u64>,
    /// Events by number.
    pub(super) events: BTreeMap<u64, Event>,
    last_number: u64,
    undo: Vec<Undo>,
    pub(super) notifies: bool,
}

/// The value that a write replaced.
#[derive(Clone, Debug)]
enum Undo {
    Queue(Option<Box<Queue>>),
    Task(TaskId, Option<Box<Task>>),
    Payload(TaskId, Option<Json>),
    Result(TaskId, Option<Json>),
    Log(TaskId, Option<Vec<LogLine>>),
    Edge((TaskId, TaskId), Option<Edge>),
    Presence(WorkerId, Option<Box<Presence>>),
    Kind(Kind, Option<KindRow>),
    Key(Key, Option<KeyRow>),
    Schedule(Key, Option<Box<Schedule>>),
    Count((Kind, Counted), i64),
    Took((Kind, Took), Option<u64>),
    Event(u64, Option<Box<Event>>),
}

/// The rows that a command has written, for observers of the tables.
#[derive(Clone, Debug, Default)]
pub struct Written {
    /// Tasks written, and both ends of edges written.
    pub tasks: BTreeSet<TaskId>,
    /// Whether the queue's row was written.
    pub queue: bool,
    /// Whether a counter was written.
    pub counts: bool,
    /// Whether a kind was written.
    pub kinds: bool,
}

impl Tables {
    /// Sorted by downstream, after `after`.
    pub(super) fn edges_after(&self, up: TaskId, after: Option<TaskId>) -> impl Iterator<Item = &Edge> {
        let from = after.map_or(Bound::Included((up, TaskId::FIRST)), |after| Bound::Excluded((up, after)));
        let ends = self.downstreams.range((from, Bound::Included((up, TaskId::LAST))));
        ends.filter_map(|&(up, down)| self.edges.get(&(down, up)))
    }

    /// Whether the queue does not exist.
    pub fn is_empty(&self) -> bool {
        self.queue.is_none()
    }

    /// Ends the command; undoes its writes unless `is_done`. Returns whether to notify watchers.
    pub fn finish(&mut self, is_done: bool) -> bool {
        let notifies = std::mem::take(&mut self.notifies) && is_done;
        if !is_done {
            for undo in std::mem::take(&mut self.undo).into_iter().rev() {
                match undo {
                    Undo::Queue(queue) => self.queue = queue.map(|queue| *queue),
                    Undo::Task(id, task) => self.set_task(id, task.map(|task| *task)),
                    Undo::Payload(id, payload) => self.set_payload(id, payload),
                    Undo::Result(id, result) => self.set_result(id, result),
                    Undo::Log(id, log) => self.set_log(id, log),
                    Undo::Edge(ends, edge) => self.set_edge(ends, edge),
                    Undo::Presence(id, presence) => self.set_presence(id, presence.map(|presence| *presence)),
                    Undo::Kind(kind, row) => self.set_kind(kind, row),
                    Undo::Key(key, row) => self.set_key(key, row),
                    Undo::Schedule(name, schedule) => {
                        self.set_schedule(name, schedule.map(|schedule| *schedule))
                    }
                    Undo::Count(counted, more) => self.add_count(counted, -more),
                    Undo::Took(took, number) => self.set_took(took, number),
                    Undo::Event(number, event) => self.set_event(number, event.map(|event| *event)),
                }
            }
        }
        self.undo.clear();
        notifies
    }

    /// The rows that the current command has written so far.
    pub fn written(&self) -> Written {
        let mut written = Written::default();
        for undo in &self.undo {
            match undo {
                Undo::Task(id, _) => written.tasks.extend([*id]),
                Undo::Edge((down, up), _) => written.tasks.extend([*down, *up]),
                Undo::Queue(_) => written.queue = true,
                Undo::Count(..) => written.counts = true,
                Undo::Kind(..) => written.kinds = true,
                _ => {}
            }
        }
        written
    }

    pub(super) fn set_queue(&mut self, queue: Queue) {
        self.undo.push(Undo::Queue(self.queue.replace(queue).map(Box::new)));
    }

    pub(super) fn set_task(&mut self, id: TaskId, task: Option<Task>) {
        self.entries.replace(self.tasks.get(&id), task.as_ref());
        let before = set(&mut self.tasks, id, task);
        self.undo.push(Undo::Task(id, before.map(Box::new)));
    }

    pub(super) fn set_payload(&mut self, id: TaskId, payload: Option<Json>) {
        let before = set(&mut self.payloads, id, payload);
        self.undo.push(Undo::Payload(id, before));
    }

    pub(super) fn set_result(&mut self, id: TaskId, result: Option<Json>) {
        let before = set(&mut self.results, id, result);
        self.undo.push(Undo::Result(id, before));
    }

    pub(super) fn set_log(&mut self, id: TaskId, log: Option<Vec<LogLine>>) {
        let before = set(&mut self.logs, id, log);
        self.undo.push(Undo::Log(id, before));
    }

    pub(super) fn set_edge(&mut self, (down, up): (TaskId, TaskId), edge: Option<Edge>) {
        match edge {
            Some(_) => self.downstreams.insert((up, down)),
            None => self.downstreams.remove(&(up, down)),
        };
        let before = set(&mut self.edges, (down, up), edge);
        self.undo.push(Undo::Edge((down, up), before));
    }

    pub(super) fn set_presence(&mut self, id: WorkerId, presence: Option<Presence>) {
        let before = set(&mut self.presences, id, presence);
        self.undo.push(Undo::Presence(id, before.map(Box::new)));
    }

    pub(super) fn set_kind(&mut self, kind: Kind, row: Option<KindRow>) {
        let before = set(&mut self.kinds, kind.clone(), row);
        self.undo.push(Undo::Kind(kind, before));
    }

    pub(super) fn set_key(&mut self, key: Key, row: Option<KeyRow>) {
        let before = set(&mut self.keys, key.clone(), row);
        self.undo.push(Undo::Key(key, before));
    }

    pub(super) fn set_schedule(&mut self, name: Key, schedule: Option<Schedule>) {
        let before = set(&mut self.schedules, name.clone(), schedule);
        self.undo.push(Undo::Schedule(name, before.map(Box::new)));
    }

    pub(super) fn add_count(&mut self, counted: (Kind, Counted), more: i64) {
        *self.counts.entry(counted.clone()).or_default() += more;
        self.undo.push(Undo::Count(counted, more));
    }

    pub(super) fn set_took(&mut self, took: (Kind, Took), number: Option<u64>) {
        let before = set(&mut self.times, took.clone(), number);
        self.undo.push(Undo::Took(took, before));
    }

    pub(super) fn add_event(&mut self, event: Event) {
        // Numbers are never reused: an undone event leaves a gap.
        self.last_number += 1;
        self.set_event(self.last_number, Some(event));
    }

    pub(super) fn set_event(&mut self, number: u64, event: Option<Event>) {
        let before = set(&mut self.events, number, event);
        self.undo.push(Undo::Event(number, before.map(Box::new)));
    }

    pub(super) fn tasks_of<'t, C: 't, O: Sort + 't>(
        &'t self,
        entries: impl Iterator<Item = &'t (C, O)>,
    ) -> impl Iterator<Item = &'t Task> {
        entries.filter_map(|(_, order)| self.tasks.get(&order.id()))
    }
}

fn set<K: Ord, V>(map: &mut BTreeMap<K, V>, key: K, value: Option<V>) -> Option<V> {
    match value {
        Some(value) => map.insert(key, value),
        None => map.remove(&key),
    }
}
