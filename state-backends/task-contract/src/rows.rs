//! Lookups and writes that the rules need from a store.

use interval_queue_contract::{Micros, StateError};

use crate::{
    Corrected, Counted, Cursor, Edge, EdgeState, Event, Json, Key, KeyRow, Kind, KindRow, LogLine, Presence,
    Queue, Schedule, Selector, State, Task, TaskId, Took, WorkerId,
    index::{self, Index},
};

/// The rows of one queue within one atomic command; a store adds no rule.
///
/// Lookups find what the command has written. If a call fails, the store undoes the whole command.
/// A lookup returns at most `most` rows and costs about as much as it returns: it needs one index.
/// A new lookup of tasks is one line of [`index`] and one method here.
#[allow(clippy::missing_errors_doc, reason = "each fails as its store does, and the command with it")]
pub trait Rows {
    /// The store's error.
    type Error: From<StateError>;

    /// The queue. `None`: not stored.
    fn queue(&mut self) -> Result<Option<Queue>, Self::Error>;
    /// Writes the queue.
    fn put_queue(&mut self, queue: &Queue) -> Result<(), Self::Error>;

    /// A task.
    fn task(&mut self, id: TaskId) -> Result<Option<Task>, Self::Error>;
    /// Adds a task with its payload.
    fn insert(&mut self, task: &Task, payload: &Json) -> Result<(), Self::Error>;
    /// Writes a task, stored as `before`.
    fn put(&mut self, before: &Task, after: &Task) -> Result<(), Self::Error>;
    /// Removes a task with its payload, result and log, after its edges.
    fn remove(&mut self, task: &Task) -> Result<(), Self::Error>;
    /// The payload of a task.
    fn payload(&mut self, id: TaskId) -> Result<Option<Json>, Self::Error>;
    /// Writes a payload. `None` removes it.
    fn put_payload(&mut self, id: TaskId, payload: Option<&Json>) -> Result<(), Self::Error>;
    /// The result of a task.
    fn result(&mut self, id: TaskId) -> Result<Option<Json>, Self::Error>;
    /// Writes a result. `None` removes it.
    fn put_result(&mut self, id: TaskId, result: Option<&Json>) -> Result<(), Self::Error>;
    /// The log of a task, in the order of storing.
    fn log(&mut self, id: TaskId) -> Result<Vec<LogLine>, Self::Error>;
    /// Writes a log. Empty: removes it.
    fn put_log(&mut self, id: TaskId, log: &[LogLine]) -> Result<(), Self::Error>;

    /// Tasks of an index with these columns, in its order, up to an instant.
    fn look<I: Index>(
        &mut self,
        columns: I::Columns,
        until: Option<Micros>,
        most: u32,
    ) -> Result<Vec<Task>, Self::Error>;
    /// The first instant of an index without columns.
    fn first_instant<I: Index<Columns = ()>>(&mut self) -> Result<Option<Micros>, Self::Error>;

    /// The holder of a unique name.
    fn by_name(&mut self, name: &Key) -> Result<Option<Task>, Self::Error> {
        Ok(self.look::<index::Name>((name.clone(),), None, 1)?.into_iter().next())
    }
    /// Added tasks by [`Task::order`].
    fn added(&mut self, most: u32) -> Result<Vec<Task>, Self::Error> {
        self.look::<index::Added>((), None, most)
    }
    /// Due scheduled tasks, by [`Task::start_order`].
    fn scheduled(&mut self, until: Micros, most: u32) -> Result<Vec<Task>, Self::Error> {
        self.look::<index::Scheduled>((), Some(until), most)
    }
    /// The next time of a scheduled task.
    fn next_scheduled(&mut self) -> Result<Option<Micros>, Self::Error> {
        self.first_instant::<index::Scheduled>()
    }
    /// Ready tasks of these kinds, from this priority on, by [`Task::order`]: merged from
    /// [`index::Ready`].
    fn ready(&mut self, kinds: &[Kind], at_least: Option<i32>, most: u32) -> Result<Vec<Task>, Self::Error>;
    /// Number of leased tasks: [`index::Leased`].
    fn leased(&mut self) -> Result<u64, Self::Error>;
    /// Number of leased tasks of a key: [`index::LeasedOfKey`].
    fn leased_of_key(&mut self, key: &Key) -> Result<u64, Self::Error>;
    /// Tasks leased to a worker, by id.
    fn held_by(&mut self, worker: WorkerId, most: u32) -> Result<Vec<Task>, Self::Error> {
        self.look::<index::Leased>((worker,), None, most)
    }
    /// Tasks leased to a worker that it must stop, by id.
    fn to_stop(&mut self, worker: WorkerId, most: u32) -> Result<Vec<Task>, Self::Error> {
        self.look::<index::ToStop>((worker,), None, most)
    }
    /// Number of holders of a key: [`index::Holder`].
    fn holders(&mut self, key: &Key) -> Result<u64, Self::Error>;
    /// Whether a holder of the key is ordered: [`index::Holder`].
    fn has_ordered_holder(&mut self, key: &Key) -> Result<bool, Self::Error>;
    /// The last ready holder of a key, by [`Task::key_order`]: merged from [`index::Holder`].
    fn last_ready_holder(&mut self, key: &Key) -> Result<Option<Task>, Self::Error>;
    /// The first task that competes for a key, by [`Task::key_order`].
    fn first_competitor(&mut self, key: &Key) -> Result<Option<Task>, Self::Error> {
        Ok(self.look::<index::Line>((key.clone(), false), None, 1)?.into_iter().next())
    }
    /// Number of tasks that wait for a key, unserved or not, up to `most`: [`index::Line`].
    fn blocked(&mut self, key: &Key, most: u32) -> Result<u64, Self::Error>;
    /// The next key that a task holds or waits for: [`index::Holder`] and [`index::Line`].
    fn next_key(&mut self, after: Option<&Key>) -> Result<Option<Key>, Self::Error>;
    /// Unserved tasks of a kind.
    fn unserved(&mut self, kind: &Kind, most: u32) -> Result<Vec<Task>, Self::Error> {
        self.look::<index::Unserved>((kind.clone(),), None, most)
    }
    /// Ready tasks of a kind that hold a key.
    fn ready_holders(&mut self, kind: &Kind, most: u32) -> Result<Vec<Task>, Self::Error> {
        self.look::<index::ReadyHolder>((kind.clone(),), None, most)
    }
    /// Live tasks past their deadline that are not asked to stop.
    fn overdue(&mut self, until: Micros, most: u32) -> Result<Vec<Task>, Self::Error> {
        self.look::<index::Deadline>((), Some(until), most)
    }
    /// The next deadline of live tasks that are not asked to stop.
    fn next_deadline(&mut self) -> Result<Option<Micros>, Self::Error> {
        self.first_instant::<index::Deadline>()
    }
    /// Ended tasks with pending notifications.
    fn unnotified(&mut self, most: u32) -> Result<Vec<Task>, Self::Error> {
        self.look::<index::Unnotified>((), None, most)
    }
    /// Tasks in an ended state that ended before this instant, notified and not retained, oldest
    /// first.
    fn ended(&mut self, state: State, before: Micros, most: u32) -> Result<Vec<Task>, Self::Error> {
        match before.get().checked_sub(1) {
            Some(until) => self.look::<index::Ended>((state,), Some(Micros::new(until)), most),
            None => Ok(Vec::new()),
        }
    }
    /// Selected tasks after a position, in its order, of the [`MAX_SCANNED`](crate::MAX_SCANNED)
    /// tasks after it; of named ids, all. `Oldest` and `Newest`: [`index::ByAdded`]. `Ended`:
    /// merged from [`index::Ended`] of each ended state and [`index::EndedOther`]. Payloads need
    /// not match.
    fn select(&mut self, selector: &Selector, after: Cursor, most: u32) -> Result<Vec<Task>, Self::Error>;
    /// The position of the last of the [`MAX_SCANNED`](crate::MAX_SCANNED) tasks after a position.
    /// `None`: fewer.
    fn scan_end(&mut self, after: Cursor) -> Result<Option<Cursor>, Self::Error>;

    /// Adds an edge.
    fn insert_edge(&mut self, edge: &Edge) -> Result<(), Self::Error>;
    /// Removes an edge.
    fn remove_edge(&mut self, edge: &Edge) -> Result<(), Self::Error>;
    /// Writes a stored edge.
    fn put_edge(&mut self, edge: &Edge) -> Result<(), Self::Error>;
    /// Edges from a task, by downstream.
    fn edges_from(&mut self, up: TaskId, after: Option<TaskId>, most: u32) -> Result<Vec<Edge>, Self::Error>;
    /// Edges from a task that [are unnotified](Edge::is_unnotified) in this generation, by
    /// downstream.
    fn unnotified_from(&mut self, up: TaskId, generation: u32, most: u32) -> Result<Vec<Edge>, Self::Error>;
    /// Edges to a task, by upstream. `state`: only these.
    fn edges_to(
        &mut self,
        down: TaskId,
        state: Option<EdgeState>,
        after: Option<TaskId>,
        most: u32,
    ) -> Result<Vec<Edge>, Self::Error>;
    /// Whether an edge to this task [is pending](EdgeState::is_pending).
    fn has_pending(&mut self, down: TaskId) -> Result<bool, Self::Error>;

    /// A worker.
    fn presence(&mut self, worker: WorkerId) -> Result<Option<Presence>, Self::Error>;
    /// Writes a worker.
    fn put_presence(&mut self, presence: &Presence) -> Result<(), Self::Error>;
    /// Removes a worker.
    fn remove_presence(&mut self, worker: WorkerId) -> Result<(), Self::Error>;
    /// Workers whose lease ended by this instant of the lease clock, earliest first: `ends where
    /// cleared = …`.
    fn ended_presences(
        &mut self,
        until: Micros,
        cleared: bool,
        most: u32,
    ) -> Result<Vec<Presence>, Self::Error>;
    /// Shortest lease, of busy workers, that ends after this instant of the lease clock.
    fn shortest_busy_lease(&mut self, after: Micros) -> Result<Option<Micros>, Self::Error>;
    /// Longest lease that ends after this instant of the lease clock.
    fn longest_lease(&mut self, after: Micros) -> Result<Option<Micros>, Self::Error>;
    /// First end of a busy worker's lease after this instant of the lease clock.
    fn next_busy_end(&mut self, after: Micros) -> Result<Option<Micros>, Self::Error>;
    /// All workers, by id.
    fn presences(&mut self) -> Result<Vec<Presence>, Self::Error>;

    /// A kind.
    fn kind(&mut self, kind: &Kind) -> Result<Option<KindRow>, Self::Error>;
    /// Writes a kind.
    fn put_kind(&mut self, row: &KindRow) -> Result<(), Self::Error>;
    /// All kinds, by name.
    fn kinds(&mut self) -> Result<Vec<KindRow>, Self::Error>;

    /// A key.
    fn key(&mut self, key: &Key) -> Result<Option<KeyRow>, Self::Error>;
    /// Writes a key.
    fn put_key(&mut self, row: &KeyRow) -> Result<(), Self::Error>;
    /// Removes a key.
    fn remove_key(&mut self, key: &Key) -> Result<(), Self::Error>;
    /// Paused keys, by key: `key where limit = 0`.
    fn paused_keys(&mut self, most: u32) -> Result<Vec<KeyRow>, Self::Error>;
    /// Keys that need rebalancing.
    fn keys_to_rebalance(&mut self, most: u32) -> Result<Vec<KeyRow>, Self::Error>;

    /// A schedule.
    fn schedule(&mut self, name: &Key) -> Result<Option<Schedule>, Self::Error>;
    /// Writes a schedule.
    fn put_schedule(&mut self, schedule: &Schedule) -> Result<(), Self::Error>;
    /// Removes a schedule.
    fn remove_schedule(&mut self, name: &Key) -> Result<(), Self::Error>;
    /// All schedules, by name.
    fn schedules(&mut self) -> Result<Vec<Schedule>, Self::Error>;

    /// Adds `more` to a count.
    fn count(&mut self, kind: &Kind, counted: Counted, more: i64) -> Result<(), Self::Error>;
    /// Wrong counts of tasks, by kind and state. Reads all tasks.
    fn miscounted(&mut self) -> Result<Vec<Corrected>, Self::Error>;
    /// All counts but zeros.
    fn counts(&mut self) -> Result<Vec<(Kind, Counted, u64)>, Self::Error>;

    /// Adds `more` to a number of [`Times`](crate::Times).
    fn took(&mut self, kind: &Kind, took: Took, more: u64) -> Result<(), Self::Error>;
    /// Numbers for [`Times`](crate::Times) of a kind, from an hour on: `kind, hour, cell`.
    fn times(&mut self, kind: &Kind, from: u32) -> Result<Vec<(Took, u64)>, Self::Error>;
    /// Adds the counts of events in hours before `hours` to their [days](Took::of_day), removes
    /// these hours, and the days before `days`: `hour`.
    fn forget_times(&mut self, hours: u32, days: u32) -> Result<(), Self::Error>;

    /// Adds an event, numbered from 1 and higher than any the queue ever had.
    fn put_event(&mut self, event: &Event) -> Result<(), Self::Error>;
    /// Events with a higher number that were stored before this command: `number`.
    fn events(&mut self, after: u64, most: u32) -> Result<Vec<(u64, Event)>, Self::Error>;
    /// Highest number of a stored event. 0: none.
    fn last_event(&mut self) -> Result<u64, Self::Error>;
    /// Removes the first events, up to one that happened at this instant or later.
    fn forget_events(&mut self, before: Micros, most: u32) -> Result<(), Self::Error>;

    /// Notifies [watchers](crate::TaskStore::changes) once the command is stored.
    fn notify(&mut self) -> Result<(), Self::Error>;
}
