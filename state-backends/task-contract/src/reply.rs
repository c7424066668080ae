//! Replies of a store.

use interval_queue_contract::{Micros, StateError, StateErrorKind};
use serde::{Deserialize, Serialize};

use crate::{
    Completion, Corrected, Counted, Cursor, Day, Edge, Followed, Json, Key, Kind, KindRow, LogLine,
    OnFailure, Policy, Presence, Schedule, Settings, State, Stop, Task, TaskId, Times, Token,
};

/// The reply to a [`Command`](crate::Command).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reply {
    /// To an `add` or an import: the outcomes, in the order of the tasks.
    Added(Vec<Added>),
    /// To a `step`.
    Stepped(Stepped),
    /// To a change of settings, pauses, key limits and schedules: the settings in force.
    Changed(Settings),
    /// To a change of selected tasks.
    Touched(Touched),
    /// To a recount.
    Recounted(Recounted),
    /// To a `fire`.
    Fired(Fired),
    /// To a `follow`.
    Followed(Followed),
    /// To [`Read::Clock`](crate::Read::Clock).
    Clock(Micros),
    /// To [`Read::Overview`](crate::Read::Overview).
    Overview(Box<Overview>),
    /// To [`Read::Tasks`](crate::Read::Tasks), in the order of the ids. `None`: not stored. Ends
    /// early beyond [`MAX_REPLY`](crate::MAX_REPLY).
    Tasks(Vec<Option<Stored>>),
    /// To [`Read::Page`](crate::Read::Page).
    Page(Page),
    /// To [`Read::Count`](crate::Read::Count).
    Count(Tally),
    /// To [`Read::Inputs`](crate::Read::Inputs).
    Inputs(Inputs),
    /// To [`Read::Downstreams`](crate::Read::Downstreams).
    Downstreams(Vec<TaskId>),
    /// To [`Read::Workers`](crate::Read::Workers).
    Workers(Vec<Worker>),
    /// To [`Read::Schedules`](crate::Read::Schedules).
    Schedules(Vec<Schedule>),
    /// To [`Read::Times`](crate::Read::Times): the hours with runs, in their order.
    Times(Vec<Times>),
    /// To [`Read::Days`](crate::Read::Days): the days with events, in their order.
    Days(Vec<Day>),
    /// To [`Read::Upcoming`](crate::Read::Upcoming).
    Upcoming(Vec<Task>),
    /// To [`Read::KeyLimit`](crate::Read::KeyLimit). `None`: the queue's limit.
    KeyLimit(Option<u32>),
    /// To [`Read::Ready`](crate::Read::Ready).
    Ready(bool),
}

impl Reply {
    /// The outcomes of an `add`, in the order of its tasks.
    ///
    /// # Errors
    ///
    /// [`Damaged`](StateErrorKind::Damaged): it is another reply.
    pub fn added(self) -> Result<Vec<Added>, StateError> {
        match self {
            Self::Added(added) => Ok(added),
            other => {
                let text = format!("an add was answered by {other:?}");
                Err(StateError::new(StateErrorKind::Damaged, text))
            }
        }
    }
}

/// The outcome of adding a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Added {
    /// The task is stored.
    New(TaskId),
    /// An earlier sending of the request stored the task, or replaced another one.
    Again(TaskId),
    /// Not added: this task holds the unique name.
    Kept(TaskId),
    /// This task held the unique name and has the new content now.
    Replaced(TaskId),
}

impl Added {
    /// The stored task.
    pub fn id(self) -> TaskId {
        match self {
            Self::New(id) | Self::Again(id) | Self::Kept(id) | Self::Replaced(id) => id,
        }
    }
}

/// The reply to a step.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Stepped {
    /// Whether the worker must list all held leases in its next step: its last step is unknown, or
    /// its lease has ended. Nothing was leased.
    #[serde(default)]
    pub resync: bool,
    /// Tasks leased by this step.
    #[serde(default)]
    pub leased: Vec<Leased>,
    /// Whether tasks may be held ahead of free permits: nothing that the worker handles is paused,
    /// and there is no `max_running`.
    #[serde(default)]
    pub may_prefetch: bool,
    /// Reported tasks whose tokens are not in force: unchanged.
    pub lost: Vec<TaskId>,
    /// Held tasks that must stop.
    pub stop: Vec<(TaskId, Stop)>,
    /// Time until something is due that no notification announces. `None`: nothing known.
    pub next: Option<Micros>,
    /// Whether maintenance is left: a worker that wants tasks polls again at once.
    #[serde(default)]
    pub more: bool,
    /// Schedules whose next instant has come.
    pub schedules: Vec<DueSchedule>,
    /// Tasks whose results were too large, which counts as a failure.
    pub refused: Vec<TaskId>,
}

/// The end of a run within a transaction of the application, valid once that is committed. The
/// handler returns it, so that its worker does not report the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[must_use = "commit the transaction, and return it from the handler"]
#[non_exhaustive]
pub struct Completed {
    /// The task.
    pub id: TaskId,
    /// The token of the run.
    pub token: Token,
    /// How the task has ended.
    pub state: State,
}

impl Completed {
    /// For a store that has stored this completion.
    pub fn new(completion: &Completion, state: State) -> Self {
        Self { id: completion.id, token: completion.token, state }
    }
}

/// A task that was leased.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Leased {
    /// The row.
    pub task: Task,
    /// The handler's input.
    pub payload: Json,
    /// The policy in force.
    pub policy: Policy,
    /// Time until the deadline.
    pub deadline: Option<Micros>,
}

/// A schedule whose next instant has come.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct DueSchedule {
    /// The schedule.
    pub schedule: Schedule,
    /// The instant.
    pub at: Micros,
    /// The store's clock.
    pub now: Micros,
}

/// The reply to a change of selected tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Touched {
    /// Tasks that were touched, or would be in a dry run, in the order of adding.
    pub ids: Vec<TaskId>,
    /// Selected tasks left unchanged: ended tasks that a live one needs, tasks with the maximum of
    /// tags or upstreams, tasks that would wait for themselves; of a move, a key's tasks while one
    /// runs.
    pub kept: Vec<TaskId>,
    /// Touched tasks that run: their workers must stop them; they are cancelled when their runs
    /// end. Only of [`Verb::Cancel`](crate::Verb::Cancel).
    pub asked: Vec<TaskId>,
    /// Tasks not retried, each with the holder of its unique name.
    pub taken: Vec<(TaskId, TaskId)>,
    /// `after` of the next command. `None`: all are handled.
    pub next: Option<Cursor>,
    /// `watermark` of the commands that follow.
    pub watermark: Micros,
}

/// The reply to a recount.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Recounted {
    /// Counts that were wrong, now corrected.
    pub corrected: Vec<Corrected>,
    /// Index entries of tasks that are not stored, now removed. 0 where a database maintains the
    /// indexes.
    pub dropped: u64,
    /// Whether such entries are left: recount again.
    pub more: bool,
}

/// The reply to a `fire`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Fired {
    /// The tasks were added.
    Made,
    /// No task was added: the previous one has not ended.
    Skipped,
    /// The instant is kept until the previous task ends.
    Kept,
    /// Not a due next or kept instant of this revision, or the schedule is paused or removed.
    Stale,
}

/// A stored task and all that belongs to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Stored {
    /// The row.
    #[serde(flatten)]
    pub task: Task,
    /// The payload. `None`: not requested, or purged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<Json>,
    /// The result. `None`: none stored, or not requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Json>,
    /// Lines that runs have logged, and notes, oldest first. Empty also if not requested.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub log: Vec<LogLine>,
    /// The first hundred edges to upstreams.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub upstreams: Vec<Edge>,
    /// The first hundred edges to downstreams.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub downstreams: Vec<Edge>,
    /// Why the task does not run. `None`: it has ended, or a live worker holds it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<Why>,
    /// The error of the application's codec, whose payload or result is as stored. `None` from a
    /// store.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undecoded: Option<String>,
}

/// Why a task does not run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Why {
    /// No poll has admitted it since it was added.
    NoStep,
    /// Waits for upstreams.
    Upstreams,
    /// Time until it is due.
    Time(Micros),
    /// No permit of its key is free. The id: the first task that waits for one. `None`: this one.
    Key(Option<TaskId>),
    /// The key is paused.
    KeyPaused,
    /// Leased to a worker whose lease has ended: the next poll of another takes it back.
    Lost,
    /// No live worker handles its kind.
    Unserved,
    /// Its kind is paused.
    KindPaused,
    /// The queue is paused.
    Paused,
    /// The queue's `max_running` is reached.
    Limit,
    /// All live workers that handle its kind are under load and take only this priority or higher.
    Load(i32),
    /// No live worker that handles its kind and takes its priority has capacity for its weight.
    Capacity,
    /// Nothing blocks it: the next worker with capacity takes it in its turn.
    Next,
}

/// A page of tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// The tasks, in the order of the read.
    pub tasks: Vec<Stored>,
    /// `after` of the next page. `None`: last page.
    pub next: Option<Cursor>,
    /// Whether all tasks of some states and kinds are listed and the counts differ, because rows
    /// were changed by hand. [`Change::Recount`](crate::Change::Recount) corrects them.
    pub miscounted: bool,
}

/// A part of the number of selected tasks: those among at most [`MAX_SCANNED`](crate::MAX_SCANNED)
/// tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Tally {
    /// Number of selected tasks of this part.
    pub number: u64,
    /// `after` of the next part. `None`: last part.
    pub next: Option<Cursor>,
}

/// A page of results of upstreams.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inputs {
    /// The results, by upstream.
    pub inputs: Vec<Input>,
    /// `after` of the next page. `None`: last page.
    pub next: Option<TaskId>,
}

/// An upstream's result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Input {
    /// Name of the result. `None`: the upstream's id.
    pub name: Option<Key>,
    /// The upstream.
    pub up: TaskId,
    /// Effect of an upstream that does not succeed.
    pub on_failure: OnFailure,
    /// How the upstream ended.
    pub state: State,
    /// The result, if the upstream is done.
    pub result: Option<Json>,
}

/// A worker, as the store knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Worker {
    /// The stored row.
    #[serde(flatten)]
    pub presence: Presence,
    /// Time until the lease ends. `None`: it has ended.
    pub alive_for: Option<Micros>,
    /// Held tasks, at most a hundred.
    pub holds: Vec<(TaskId, Token)>,
}

/// A paused key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PausedKey {
    /// The key.
    pub key: Key,
    /// Tasks that wait for the key, at most [`MAX_COUNTED`](crate::MAX_COUNTED).
    pub tasks: u64,
    /// When it was paused, on the store's clock. `None`: unknown.
    pub since: Option<Micros>,
}

/// The status of a queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Overview {
    /// The store's clock.
    pub at: Micros,
    /// The settings in force.
    pub settings: Settings,
    /// Whether the queue is paused.
    pub paused: bool,
    /// When it was paused, on the store's clock. `None`: not paused, or unknown.
    pub paused_at: Option<Micros>,
    /// Paused keys, by key, at most [`MAX_LISTED`](crate::MAX_LISTED).
    pub paused_keys: Vec<PausedKey>,
    /// Tasks by kind: now in each state, and ever.
    pub counts: Vec<(Kind, Counted, u64)>,
    /// Live workers.
    pub workers: u64,
    /// Tasks of workers whose lease has ended, for the next polls to take back.
    pub lost: u64,
    /// All kinds.
    pub kinds: Vec<KindRow>,
    /// Kinds with live tasks that no live worker handles.
    pub unserved: Vec<Kind>,
    /// Earliest [`Task::ready_since`] of the twenty most urgent ready tasks.
    pub oldest: Option<Micros>,
    /// When the next scheduled task is due.
    pub next: Option<Micros>,
    /// Whether counts are wrong, because rows were changed by hand;
    /// [`Change::Recount`](crate::Change::Recount) corrects them. Compared only with what an
    /// overview reads: fewer than twenty ready tasks, and whether one is scheduled.
    #[serde(default)]
    pub miscounted: bool,
}
