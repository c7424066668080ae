//! The replies of a store.

use interval_queue_contract::{Micros, StateError, StateErrorKind};
use serde::{Deserialize, Serialize};

use crate::{
    Completion, Corrected, Counted, Edge, Followed, Json, Key, Kind, KindRow, OnFailure, Policy, Presence,
    Schedule, Settings, State, Stop, Task, TaskId, Times, Token,
};

/// The reply to a [`Command`](crate::Command).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reply {
    /// To an `add` or an import: the outcome for each task, in their order.
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
    /// To [`Read::Tasks`](crate::Read::Tasks), in the order of the ids. `None`: no such task. The
    /// list ends early if payloads and results exceed [`MAX_REPLY`](crate::MAX_REPLY).
    Tasks(Vec<Option<Stored>>),
    /// To [`Read::Page`](crate::Read::Page).
    Page(Page),
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
    /// To [`Read::Line`](crate::Read::Line).
    Line(Vec<Task>),
    /// To [`Read::KeyLimit`](crate::Read::KeyLimit). `None`: the queue's limit.
    KeyLimit(Option<u32>),
    /// To [`Read::Ready`](crate::Read::Ready).
    Ready(bool),
}

impl Reply {
    /// The outcome for each task of an `add`, in their order.
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

/// The outcome for a task of an `add`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Added {
    /// The task is stored.
    New(TaskId),
    /// The task was stored before, or has replaced another task, by an earlier sending of the same
    /// request.
    Again(TaskId),
    /// This other task holds the unique name and is unchanged.
    Kept(TaskId),
    /// This other task held the unique name and now has the new task's content.
    Replaced(TaskId),
}

impl Added {
    /// The task that is stored now.
    pub fn id(self) -> TaskId {
        match self {
            Self::New(id) | Self::Again(id) | Self::Kept(id) | Self::Replaced(id) => id,
        }
    }
}

/// The reply to a step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stepped {
    /// Whether the worker must resync: the store does not know it, or its lease has ended. No task
    /// was leased; the next step must list all held leases.
    pub restate: bool,
    /// Tasks leased by this step.
    pub leased: Vec<Leased>,
    /// Tasks that the worker reported under tokens that are not in force. Nothing was changed for
    /// them.
    pub lost: Vec<TaskId>,
    /// Leased tasks that the worker must stop.
    pub stop: Vec<(TaskId, Stop)>,
    /// Time until something is due that no notification announces. `None`: nothing is known.
    pub next: Option<Micros>,
    /// Whether maintenance has more to do: a worker that wants tasks polls again at once.
    pub more: bool,
    /// Schedules whose next instant has come.
    pub schedules: Vec<DueSchedule>,
    /// Tasks whose results were too large. Their runs count as failed.
    pub refused: Vec<TaskId>,
}

/// The end of a run, stored as part of a transaction of the application: it holds once that is
/// committed. The handler returns it, so its worker does not report the run again.
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
    /// The value that a store returns after it has stored this completion.
    pub fn new(completion: &Completion, state: State) -> Self {
        Self { id: completion.id, token: completion.token, state }
    }
}

/// A task that was leased.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leased {
    /// Its row.
    pub task: Task,
    /// The handler's input.
    pub payload: Json,
    /// The policy in force for it.
    pub policy: Policy,
    /// Time until its deadline.
    pub deadline: Option<Micros>,
}

/// A schedule whose next instant has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueSchedule {
    /// The schedule.
    pub schedule: Schedule,
    /// The instant.
    pub at: Micros,
    /// The store's clock.
    pub now: Micros,
}

/// The reply to a change of selected tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Touched {
    /// The tasks that were touched, or would be in a dry run, sorted by id.
    pub ids: Vec<TaskId>,
    /// Selected tasks that were left unchanged: the result of an ended task is needed by a task
    /// that has not ended; it has the maximum of tags or upstreams; it would wait for itself; or it
    /// was to move while a task of its key runs.
    pub kept: Vec<TaskId>,
    /// Touched tasks that run: their workers are asked to stop them, and they are cancelled once
    /// their runs have ended. Only for [`Verb::Cancel`](crate::Verb::Cancel).
    pub asked: Vec<TaskId>,
    /// Tasks that were not retried, each with the other task that holds its unique name.
    pub taken: Vec<(TaskId, TaskId)>,
    /// The `after` of the next command. `None`: all selected tasks are handled.
    pub next: Option<TaskId>,
    /// The instant before which tasks are selected, for the commands that follow.
    pub watermark: Micros,
}

/// The reply to a recount.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recounted {
    /// The counts that were wrong and are corrected now, by kind and state.
    pub corrected: Vec<Corrected>,
    /// Index entries that were removed because their tasks are not stored. 0 where a database
    /// maintains the indexes.
    pub dropped: u64,
    /// Whether more such entries are left: recount again.
    pub more: bool,
}

/// The reply to a `fire`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fired {
    /// The tasks are added.
    Made,
    /// No task is made for this instant: the previous task has not ended.
    Skipped,
    /// The instant is kept until the previous task has ended.
    Kept,
    /// It is not the next instant of this revision, or it has not come.
    Stale,
}

/// A stored task with all that belongs to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Stored {
    /// Its row.
    #[serde(flatten)]
    pub task: Task,
    /// Its payload. `None`: not requested, or purged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<Json>,
    /// Its result. `None`: there is none, or it was not requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Json>,
    /// Edges to its upstreams, the first hundred.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub upstreams: Vec<Edge>,
    /// Edges to its downstreams, the first hundred.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub downstreams: Vec<Edge>,
    /// Why it does not run, if it has neither ended nor a live worker.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<Why>,
}

/// Why a task does not run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Why {
    /// It was added, and no worker's poll has admitted it yet.
    NoStep,
    /// It waits for upstreams.
    Upstreams,
    /// Its time comes in this long.
    Time(Micros),
    /// Its key has no free permit. The task is the first that waits for the key. `None`: this task
    /// itself is.
    Key(Option<TaskId>),
    /// The key is paused.
    KeyPaused,
    /// It is leased, but the lease of its worker has ended: another worker's next poll takes it
    /// back.
    Lost,
    /// No live worker handles its kind.
    Unserved,
    /// Its kind is paused.
    KindPaused,
    /// The queue is paused.
    Paused,
    /// The queue's `max_running` is reached.
    Limit,
    /// Every live worker that handles its kind is under load and takes only tasks with at least
    /// this priority.
    Load(i32),
    /// No live worker that handles its kind and takes its priority has capacity for its weight.
    Room,
    /// Nothing blocks it: a worker with free capacity takes it when its turn comes.
    Next,
}

/// A page of tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// The tasks, sorted by id.
    pub tasks: Vec<Stored>,
    /// The `after` of the next page. `None`: this is the last page.
    pub next: Option<TaskId>,
    /// Whether the page holds all tasks of some states and kinds, and the counts differ: rows were
    /// removed or added by hand. [`Change::Recount`](crate::Change::Recount) corrects the counts.
    pub miscounted: bool,
}

/// A page of results of upstreams.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inputs {
    /// The results, sorted by upstream.
    pub inputs: Vec<Input>,
    /// The `after` of the next page. `None`: this is the last page.
    pub next: Option<TaskId>,
}

/// The result of an upstream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Input {
    /// Its name among the downstream's inputs. `None`: the upstream's id.
    pub name: Option<Key>,
    /// The upstream.
    pub up: TaskId,
    /// The effect on the downstream if the upstream does not succeed.
    pub on_failure: OnFailure,
    /// How the upstream ended.
    pub state: State,
    /// Its result, if it is done.
    pub result: Option<Json>,
}

/// A worker, as the store knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Worker {
    /// Its stored row.
    #[serde(flatten)]
    pub presence: Presence,
    /// Time until its lease ends. `None`: it has ended.
    pub alive_for: Option<Micros>,
    /// The tasks that it holds, at most a hundred.
    pub holds: Vec<(TaskId, Token)>,
}

/// A paused key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PausedKey {
    /// The key.
    pub key: Key,
    /// Tasks that wait for it, at most [`MAX_COUNTED`](crate::MAX_COUNTED).
    pub tasks: u64,
    /// Since when it is paused, on the store's clock. `None`: unknown.
    pub since: Option<Micros>,
}

/// The status of a queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Overview {
    /// The store's clock.
    pub at: Micros,
    /// The settings in force.
    pub settings: Settings,
    /// Whether the queue is paused.
    pub paused: bool,
    /// Since when, on the store's clock. `None`: not paused, or unknown.
    pub paused_at: Option<Micros>,
    /// Paused keys, sorted, at most [`MAX_LISTED`](crate::MAX_LISTED).
    pub paused_keys: Vec<PausedKey>,
    /// Tasks of each kind, now in each state and ever.
    pub counts: Vec<(Kind, Counted, u64)>,
    /// Live workers.
    pub workers: u64,
    /// Tasks leased to workers whose lease has ended: the next polls of other workers take them
    /// back.
    pub lost: u64,
    /// All known kinds.
    pub kinds: Vec<KindRow>,
    /// Kinds with live tasks that no live worker handles.
    pub unserved: Vec<Kind>,
    /// Earliest [`Task::ready_since`] of the twenty most urgent ready tasks.
    pub oldest: Option<Micros>,
    /// When the next scheduled task is due.
    pub next: Option<Micros>,
    /// Whether the counts are wrong, because rows were removed or added by hand.
    /// [`Change::Recount`](crate::Change::Recount) corrects them. Only what an overview reads
    /// anyway is compared: ready tasks if fewer than twenty, and whether a task is scheduled.
    pub miscounted: bool,
}
