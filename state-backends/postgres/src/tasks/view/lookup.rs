//! Lookups of the rules, and their results.

use std::hash::{Hash, Hasher};

use interval_queue_contract::Micros;
use interval_queue_task_contract::{
    Corrected, Counted, Cursor, Edge, EdgeState, Event, Json, Key, KeyRow, Kind, KindRow, LogLine, Presence,
    Queue, Schedule, Selector, Task, TaskId, Took, WorkerId, index::Index,
};

/// If one row is needed: it may be written, and then the next one is needed.
pub(super) const READ_AHEAD_ROWS: u32 = 10;

/// Limit and upper bound are part of [`Lookup`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Target {
    Queue,
    Task(TaskId),
    Payload(TaskId),
    Result(TaskId),
    Log(TaskId),
    /// Tasks of the index with this number and these columns, in its order.
    Look(usize, Vec<String>),
    /// The first instants of the index with this number.
    First(usize),
    /// Tasks of these kinds with at least this priority, by
    /// [`Task::order`](interval_queue_task_contract::Task::order).
    Ready(Vec<Kind>, Option<i32>),
    /// A number of tasks, as up to [`OrderedHolders`](Self::OrderedHolders).
    Leased,
    LeasedOfKey(Key),
    Holders(Key),
    OrderedHolders(Key),
    /// Ready tasks that hold the key, the last first.
    LastReadyHolder(Key),
    /// A number of tasks.
    Blocked(Key),
    /// The first key in use after this one.
    NextKey(Option<Key>),
    Select(Box<Selection>),
    /// The last task that a selection after this position examines.
    ScanEnd(Cursor),
    /// Edges by downstream, after this downstream.
    From(TaskId, Option<TaskId>),
    /// With pending notifications in this generation, by downstream.
    UnnotifiedFrom(TaskId, u32),
    /// By upstream, in this state and after this upstream.
    To(TaskId, Option<EdgeState>, Option<TaskId>),
    /// Pending edges by upstream.
    Pending(TaskId),
    Presence(WorkerId),
    Presences,
    Leases,
    Kind(Kind),
    Kinds,
    Key(Key),
    /// Sorted by name.
    KeysToRebalance,
    /// Sorted by name.
    PausedKeys,
    Schedule(Key),
    Schedules,
    Counts,
    Miscounted,
    /// The hours from this one on.
    Times(Kind, u32),
    /// Events with higher numbers.
    Events(u64),
    /// The highest number of an event.
    LastEvent,
}

impl Target {
    pub(crate) fn look<I: Index>(columns: &I::Columns) -> Self {
        Self::Look(I::NUMBER, I::values(columns))
    }

    pub(crate) fn is_of<I: Index>(&self) -> bool {
        matches!(self, Self::Look(number, _) if *number == I::NUMBER)
    }
}

/// The selection begins after a position.
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

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lookup {
    pub(crate) target: Target,
    pub(crate) limit: u32,
    /// Zero for targets without an instant.
    pub(crate) until: Micros,
}

impl Lookup {
    pub(crate) fn one(target: Target) -> Self {
        Self { target, limit: 1, until: Micros::ZERO }
    }

    pub(crate) fn some(target: Target, limit: u32) -> Self {
        Self { target, limit, until: Micros::ZERO }
    }

    /// `until`: an instant of the index's order.
    pub(crate) fn look<I: Index>(columns: &I::Columns, until: Option<Micros>, most: u32) -> Self {
        let limit = if most == 1 { READ_AHEAD_ROWS } else { most };
        Self { target: Target::look::<I>(columns), limit, until: until.unwrap_or_default() }
    }

    pub(crate) fn first<I: Index>() -> Self {
        Self::some(Target::First(I::NUMBER), READ_AHEAD_ROWS)
    }

    pub(super) fn is_covered_by(&self, other: &Self) -> bool {
        self.until <= other.until
    }
}

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
