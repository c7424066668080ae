//! What the rules ask of a store: to find rows, and to write them.

use interval_queue_contract::{Micros, StateError};

use crate::{
    Corrected, Counted, Edge, EdgeState, Event, Json, Key, KeyRow, Kind, KindRow, Presence, Queue, Schedule,
    Selector, State, Task, TaskId, Took, WorkerId,
};

/// The rows of one queue within one atomic command. The rules find and write by it alone; a store adds no rule.
///
/// What was written is found at once. If any call fails, the store undoes the whole command. Each look gives at most
/// `most` rows and costs about as much as it gives, whatever is stored: it is one index, named beside it as its columns
/// and its condition.
#[allow(clippy::missing_errors_doc, reason = "each fails as its store does, and the command with it")]
pub trait Rows {
    /// How the store fails.
    type Error: From<StateError>;

    /// The row of the queue; none: nothing is stored of it.
    fn queue(&mut self) -> Result<Option<Queue>, Self::Error>;
    /// Writes the row of the queue.
    fn put_queue(&mut self, queue: &Queue) -> Result<(), Self::Error>;

    /// A task by its id.
    fn task(&mut self, id: TaskId) -> Result<Option<Task>, Self::Error>;
    /// A new task with its payload.
    fn insert(&mut self, task: &Task, payload: &Json) -> Result<(), Self::Error>;
    /// Writes a task, of which `before` is stored.
    fn put(&mut self, before: &Task, after: &Task) -> Result<(), Self::Error>;
    /// Removes a task, its payload and its result. Its edges were removed before.
    fn remove(&mut self, task: &Task) -> Result<(), Self::Error>;
    /// The payload of a task.
    fn payload(&mut self, id: TaskId) -> Result<Option<Json>, Self::Error>;
    /// Writes the payload of a task; none removes it.
    fn put_payload(&mut self, id: TaskId, payload: Option<&Json>) -> Result<(), Self::Error>;
    /// The result of a task.
    fn result(&mut self, id: TaskId) -> Result<Option<Json>, Self::Error>;
    /// Writes the result of a task; none removes it.
    fn put_result(&mut self, id: TaskId, result: Option<&Json>) -> Result<(), Self::Error>;

    /// The task that has this unique name: `name where holds_name`.
    fn by_name(&mut self, name: &Key) -> Result<Option<Task>, Self::Error>;
    /// Those that are added, by [`Task::order`]: `due, added, position, id where state = added`.
    fn added(&mut self, most: u32) -> Result<Vec<Task>, Self::Error>;
    /// Those whose time has come, by [`Task::start_order`]: `not_before, added, position, id where state = scheduled`.
    fn scheduled(&mut self, until: Micros, most: u32) -> Result<Vec<Task>, Self::Error>;
    /// When the next one is due.
    fn next_scheduled(&mut self) -> Result<Option<Micros>, Self::Error>;
    /// Those that are ready, of these kinds and with at least this priority, the most urgent first, by [`Task::order`]:
    /// merged of `kind, priority, due, added, position, id where state = ready`.
    fn ready(&mut self, kinds: &[Kind], at_least: Option<i32>, most: u32) -> Result<Vec<Task>, Self::Error>;
    /// How many are leased: `where state = leased`.
    fn leased(&mut self) -> Result<u64, Self::Error>;
    /// How many of this key are leased: `key where state = leased`.
    fn leased_of_key(&mut self, key: &Key) -> Result<u64, Self::Error>;
    /// Those that are leased to this worker, by id: `worker, id where state = leased`.
    fn held_by(&mut self, worker: WorkerId, most: u32) -> Result<Vec<Task>, Self::Error>;
    /// Of those, the ones that it is asked to stop: `worker, id where stop`.
    fn to_stop(&mut self, worker: WorkerId, most: u32) -> Result<Vec<Task>, Self::Error>;
    /// How many hold a place of this key: `key where holds_key`.
    fn holders(&mut self, key: &Key) -> Result<u64, Self::Error>;
    /// Whether one of them is ordered.
    fn has_ordered_holder(&mut self, key: &Key) -> Result<bool, Self::Error>;
    /// The one of them that is ready and the last by [`Task::line`]:
    /// `key, line, added, position, id where holds_key and state = ready`.
    fn last_ready_holder(&mut self, key: &Key) -> Result<Option<Task>, Self::Error>;
    /// The first in the line of this key: `key, line, added, position, id where state = blocked and not unserved`.
    fn first_in_line(&mut self, key: &Key) -> Result<Option<Task>, Self::Error>;
    /// How many tasks wait for this key, unserved or not, at most `most`: `key where state = blocked`.
    fn blocked(&mut self, key: &Key, most: u32) -> Result<u64, Self::Error>;
    /// The first key behind this one that somebody holds or waits for: `key where holds_key or state = blocked`.
    fn next_key(&mut self, after: Option<&Key>) -> Result<Option<Key>, Self::Error>;
    /// Those of this kind that are kept out of their lines: `kind where unserved`.
    fn unserved(&mut self, kind: &Kind, most: u32) -> Result<Vec<Task>, Self::Error>;
    /// Those of this kind that are ready and hold a key: `kind where holds_key and state = ready`.
    fn ready_holders(&mut self, kind: &Kind, most: u32) -> Result<Vec<Task>, Self::Error>;
    /// Those that have not ended, are not asked to stop, and whose deadline has passed: `deadline where …`.
    fn overdue(&mut self, until: Micros, most: u32) -> Result<Vec<Task>, Self::Error>;
    /// When the next deadline is, of the same.
    fn next_deadline(&mut self) -> Result<Option<Micros>, Self::Error>;
    /// Ended ones whose end is to be told: `where ended and not told`.
    fn unnotified(&mut self, most: u32) -> Result<Vec<Task>, Self::Error>;
    /// Those that ended so before this instant, were told and are not wanted, the oldest first:
    /// `state, ended where told and not wanted`.
    fn ended(&mut self, state: State, before: Micros, most: u32) -> Result<Vec<Task>, Self::Error>;
    /// A page of selected tasks by id.
    fn select(
        &mut self,
        selector: &Selector,
        after: Option<TaskId>,
        most: u32,
    ) -> Result<Vec<Task>, Self::Error>;

    /// A new edge.
    fn insert_edge(&mut self, edge: &Edge) -> Result<(), Self::Error>;
    /// Removes an edge.
    fn remove_edge(&mut self, edge: &Edge) -> Result<(), Self::Error>;
    /// Writes an edge that is stored.
    fn put_edge(&mut self, edge: &Edge) -> Result<(), Self::Error>;
    /// Edges from a task to those behind this downstream, by downstream.
    fn edges_from(&mut self, up: TaskId, after: Option<TaskId>, most: u32) -> Result<Vec<Edge>, Self::Error>;
    /// Those that [are untold](Edge::is_untold) in this life, by downstream.
    fn unnotified_from(&mut self, up: TaskId, generation: u32, most: u32) -> Result<Vec<Edge>, Self::Error>;
    /// Edges to a task behind this upstream, by upstream: only those in this state, if one is given.
    fn edges_to(
        &mut self,
        down: TaskId,
        state: Option<EdgeState>,
        after: Option<TaskId>,
        most: u32,
    ) -> Result<Vec<Edge>, Self::Error>;
    /// Whether an edge to this task [is pending](EdgeState::is_pending).
    fn has_pending(&mut self, down: TaskId) -> Result<bool, Self::Error>;

    /// What is known of a worker.
    fn presence(&mut self, worker: WorkerId) -> Result<Option<Presence>, Self::Error>;
    /// Writes it.
    fn put_presence(&mut self, presence: &Presence) -> Result<(), Self::Error>;
    /// Forgets it.
    fn remove_presence(&mut self, worker: WorkerId) -> Result<(), Self::Error>;
    /// Those that ended at this tick or before, the first first: `ends where cleared = …`.
    fn ended_presences(
        &mut self,
        until: Micros,
        cleared: bool,
        most: u32,
    ) -> Result<Vec<Presence>, Self::Error>;
    /// The shortest lease of those that end after this tick and are busy.
    fn shortest_busy_lease(&mut self, after: Micros) -> Result<Option<Micros>, Self::Error>;
    /// The longest lease of those that end after this tick.
    fn longest_lease(&mut self, after: Micros) -> Result<Option<Micros>, Self::Error>;
    /// The first end after this tick of a presence that is busy.
    fn next_busy_end(&mut self, after: Micros) -> Result<Option<Micros>, Self::Error>;
    /// All of them, by worker.
    fn presences(&mut self) -> Result<Vec<Presence>, Self::Error>;

    /// What is known of a kind.
    fn kind(&mut self, kind: &Kind) -> Result<Option<KindRow>, Self::Error>;
    /// Writes it.
    fn put_kind(&mut self, row: &KindRow) -> Result<(), Self::Error>;
    /// All of them, by name.
    fn kinds(&mut self) -> Result<Vec<KindRow>, Self::Error>;

    /// What is said of a key.
    fn key(&mut self, key: &Key) -> Result<Option<KeyRow>, Self::Error>;
    /// Writes it.
    fn put_key(&mut self, row: &KeyRow) -> Result<(), Self::Error>;
    /// Forgets it.
    fn remove_key(&mut self, key: &Key) -> Result<(), Self::Error>;
    /// Keys that are paused, by key: `key where limit = 0`.
    fn paused_keys(&mut self, most: u32) -> Result<Vec<KeyRow>, Self::Error>;
    /// Those that are uneven.
    fn uneven_keys(&mut self, most: u32) -> Result<Vec<KeyRow>, Self::Error>;

    /// A schedule.
    fn schedule(&mut self, name: &Key) -> Result<Option<Schedule>, Self::Error>;
    /// Writes it.
    fn put_schedule(&mut self, schedule: &Schedule) -> Result<(), Self::Error>;
    /// Removes it.
    fn remove_schedule(&mut self, name: &Key) -> Result<(), Self::Error>;
    /// All of them, by name.
    fn schedules(&mut self) -> Result<Vec<Schedule>, Self::Error>;

    /// Adds to what is counted.
    fn count(&mut self, kind: &Kind, counted: Counted, more: i64) -> Result<(), Self::Error>;
    /// The counts of tasks that are wrong, by kind and state. It goes through all tasks.
    fn miscounted(&mut self) -> Result<Vec<Corrected>, Self::Error>;
    /// All that is not zero.
    fn counts(&mut self) -> Result<Vec<(Kind, Counted, u64)>, Self::Error>;

    /// Adds to how long runs of a kind waited or took.
    fn took(&mut self, kind: &Kind, took: Took, more: u64) -> Result<(), Self::Error>;
    /// The same of this hour and later ones: `kind, hour, cell`.
    fn times(&mut self, kind: &Kind, from: u32) -> Result<Vec<(Took, u64)>, Self::Error>;
    /// Forgets the hours before this one, of all kinds: `hour`.
    fn forget_times(&mut self, before: u32) -> Result<(), Self::Error>;

    /// A new event, behind all that are there. It gets a number that is higher than that of any that the queue ever
    /// had, 1 at least.
    fn put_event(&mut self, event: &Event) -> Result<(), Self::Error>;
    /// Events that were stored before this command and have a higher number, with their numbers: `number`.
    fn events(&mut self, after: u64, most: u32) -> Result<Vec<(u64, Event)>, Self::Error>;
    /// The highest number of an event that is kept; 0: none is.
    fn last_event(&mut self) -> Result<u64, Self::Error>;
    /// Forgets the first ones, so many at most, up to one that did not happen before this instant.
    fn forget_events(&mut self, before: Micros, most: u32) -> Result<(), Self::Error>;

    /// Nudges those who [watch](crate::TaskStore::changes) the queue, once the command is stored.
    fn notify(&mut self) -> Result<(), Self::Error>;
}
