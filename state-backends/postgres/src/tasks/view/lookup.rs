//! Lookups of the rules, and their results.

use std::hash::{Hash, Hasher};

use interval_queue_contract::Micros;
use interval_queue_task_contract::{
    Corrected, Counted, Cursor, Edge, EdgeState, Event, Json, Key, KeyRow, Kind, KindRow, LogLine, Presence,
    Queue, Schedule, Selector, Task, TaskId, Took, WorkerId, index::Index,
};

/// Number of rows to read if one is needed: the first one may be written, and then the next one is
/// needed.
pub(super) const READ_AHEAD_ROWS: u32 = 10;

/// The rows that a lookup reads. Limit and upper bound are part of [`Lookup`].
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
    /// The log of a task.
    Log(TaskId),
    /// Tasks of the index with this number and with these columns, in its order.
    Look(usize, Vec<String>),
    /// The first instants of the index with this number.
    First(usize),
    /// Ready tasks of these kinds with at least this priority, by
    /// [`Task::order`](interval_queue_task_contract::Task::order).
    Ready(Vec<Kind>, Option<i32>),
    /// Number of leased tasks.
    Leased,
    /// Number of leased tasks of a key.
    LeasedOfKey(Key),
    /// Number of tasks that hold a key.
    Holders(Key),
    /// Number of ordered tasks that hold a key.
    OrderedHolders(Key),
    /// Ready tasks that hold a key, the last first.
    LastReadyHolder(Key),
    /// Number of tasks blocked by a key.
    Blocked(Key),
    /// The first key in use after this one.
    NextKey(Option<Key>),
    /// Tasks of a selector after a position, in its order.
    Select(Box<Selection>),
    /// The last task that a selection after a position examines.
    ScanEnd(Cursor),
    /// Edges from a task, by downstream, after this downstream.
    From(TaskId, Option<TaskId>),
    /// Edges from a task with pending notifications in this generation, by downstream.
    UnnotifiedFrom(TaskId, u32),
    /// Edges to a task, by upstream, in this state and after this upstream.
    To(TaskId, Option<EdgeState>, Option<TaskId>),
    /// Pending edges to a task, by upstream.
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
    /// The row of a key.
    Key(Key),
    /// Keys that need rebalancing, by name.
    KeysToRebalance,
    /// Paused keys, by name.
    PausedKeys,
    /// A schedule.
    Schedule(Key),
    /// All schedules.
    Schedules,
    /// All counts.
    Counts,
    /// The counts that are wrong.
    Miscounted,
    /// Waiting times and durations of the runs of a kind, from this hour on.
    Times(Kind, u32),
    /// Events with higher numbers.
    Events(u64),
    /// The highest number of an event.
    LastEvent,
}

impl Target {
    /// Tasks of an index with these columns.
    pub(crate) fn look<I: Index>(columns: &I::Columns) -> Self {
        Self::Look(I::NUMBER, I::values(columns))
    }

    /// Whether this is a lookup of tasks of this index.
    pub(crate) fn is_of<I: Index>(&self) -> bool {
        matches!(self, Self::Look(number, _) if *number == I::NUMBER)
    }
}

/// A selector, and the position after which it selects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Selection {
    pub(crate) selector: Selector,
    pub(crate) after: Cursor,
}

/// A command has only one selection, so the hash omits the selector.
impl Hash for Selection {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.after.hash(state);
    }
}

/// The rows to read, and how many of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lookup {
    pub(crate) target: Target,
    /// Maximum number of rows.
    pub(crate) limit: u32,
    /// The upper bound of targets up to an instant, else zero.
    pub(crate) until: Micros,
}

impl Lookup {
    pub(crate) fn one(target: Target) -> Self {
        Self { target, limit: 1, until: Micros::ZERO }
    }

    pub(crate) fn some(target: Target, limit: u32) -> Self {
        Self { target, limit, until: Micros::ZERO }
    }

    /// Tasks of an index with these columns, up to an instant of its order.
    pub(crate) fn look<I: Index>(columns: &I::Columns, until: Option<Micros>, most: u32) -> Self {
        let limit = if most == 1 { READ_AHEAD_ROWS } else { most };
        Self { target: Target::look::<I>(columns), limit, until: until.unwrap_or_default() }
    }

    /// The first instant of an index.
    pub(crate) fn first<I: Index>() -> Self {
        Self::some(Target::First(I::NUMBER), READ_AHEAD_ROWS)
    }

    /// Whether the result of `other` also answers this lookup.
    pub(super) fn is_covered_by(&self, other: &Self) -> bool {
        self.until <= other.until
    }
}

/// The lease of a worker.
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

/// The rows that a lookup returned.
#[derive(Clone, Debug)]
pub(crate) enum LookupResult {
    Queue(Option<Box<Queue>>),
    Task(Option<Box<Task>>),
    Json(Option<Json>),
    Log(Vec<LogLine>),
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
