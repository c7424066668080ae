//! What a store answers.

use interval_queue_contract::{Micros, StateError, StateErrorKind};
use serde::{Deserialize, Serialize};

use crate::{
    Completion, Corrected, Counted, Edge, Followed, Json, Key, Kind, KindRow, OnFailure, Policy, Presence,
    Schedule, Settings, State, Stop, Task, TaskId, Times, Token,
};

/// The answer to a [`Command`](crate::Command).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reply {
    /// To an `add`: what became of each task, in their order.
    Added(Vec<Added>),
    /// To a `step`.
    Stepped(Stepped),
    /// To a change of settings, pause, resume and schedules: the settings that hold now.
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
    /// To [`Read::Tasks`](crate::Read::Tasks), in the order of the ids; none: there is no such task. Those at the end
    /// are left out if their payloads and results are too much for one reply.
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
    /// To [`Read::Times`](crate::Read::Times): hours in which there was something, in their order.
    Times(Vec<Times>),
    /// To [`Read::Line`](crate::Read::Line).
    Line(Vec<Task>),
    /// To [`Read::KeyLimit`](crate::Read::KeyLimit); `None`: the key has the limit of the queue.
    KeyLimit(Option<u32>),
    /// To [`Read::Ready`](crate::Read::Ready).
    Ready(bool),
}

impl Reply {
    /// What became of the tasks of an `add`, in their order.
    ///
    /// # Errors
    ///
    /// [`Damaged`](StateErrorKind::Damaged): it answers something else.
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

/// What became of a task in an `add`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Added {
    /// It is stored.
    New(TaskId),
    /// It was stored before, or put in the place of another one, by another sending of the same request.
    Again(TaskId),
    /// This other one has its unique name and stands.
    Kept(TaskId),
    /// This other one had its unique name and became it.
    Replaced(TaskId),
}

impl Added {
    /// The task that is there now.
    pub fn id(self) -> TaskId {
        match self {
            Self::New(id) | Self::Again(id) | Self::Kept(id) | Self::Replaced(id) => id,
        }
    }
}

/// The answer to a step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stepped {
    /// The store does not know the worker, or holds it for dead: nothing was leased, and the next step is to say all
    /// that the worker holds.
    pub restate: bool,
    /// What the worker has from now on.
    pub leased: Vec<Leased>,
    /// What it spoke of and does not have: those tokens are not in force, and nothing was changed by them.
    pub lost: Vec<TaskId>,
    /// What it has and is asked to stop.
    pub stop: Vec<(TaskId, Stop)>,
    /// In what time there is something to do that nobody will be nudged for; none: nothing is known of.
    pub next: Option<Micros>,
    /// Whether housekeeping has more to do: a worker that wants tasks steps again at once.
    pub more: bool,
    /// Schedules whose next instant has come.
    pub schedules: Vec<DueSchedule>,
    /// What went wrong with results: they were too large, and their runs count as failed.
    pub refused: Vec<TaskId>,
}

/// The end of a run as part of a transaction of the application: it holds once that is committed. A handler returns it
/// then, and its worker has nothing to say of the run any more.
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
    /// What a store says that has completed a run so.
    pub fn new(completion: &Completion, state: State) -> Self {
        Self { id: completion.id, token: completion.token, state }
    }
}

/// A task that was leased.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leased {
    /// Its row.
    pub task: Task,
    /// What its handler is given.
    pub payload: Json,
    /// What holds for its failures.
    pub policy: Policy,
    /// In what time its deadline is.
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

/// The answer to a change of selected tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Touched {
    /// What was touched, or would be, in the order of their ids.
    pub ids: Vec<TaskId>,
    /// Selected tasks that could not be touched: ended ones that a task needs that has not ended, ones with as
    /// many tags or upstreams as can be, ones that would wait for themselves, and of a move ones of a key of which one
    /// runs.
    pub kept: Vec<TaskId>,
    /// Touched tasks that run: their workers are asked to stop the runs, and the tasks are cancelled once these have
    /// ended. Only for [`Verb::Cancel`](crate::Verb::Cancel).
    pub asked: Vec<TaskId>,
    /// Tasks that were not retried since another task has their unique name: with that task.
    pub taken: Vec<(TaskId, TaskId)>,
    /// Go on behind this one; none: that was all.
    pub next: Option<TaskId>,
    /// The instant up to which tasks are selected, for the commands that follow.
    pub watermark: Micros,
}

/// The answer to a recount.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recounted {
    /// Numbers that were wrong and are right now, by kind and state.
    pub corrected: Vec<Corrected>,
    /// Entries of indexes that were removed, since their tasks are not stored. 0 where a database keeps the indexes.
    pub dropped: u64,
    /// Whether there are more such entries: recount again.
    pub more: bool,
}

/// The answer to a `fire`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fired {
    /// The tasks are added.
    Made,
    /// Nothing is made at this instant: the task of the one before has not ended.
    Skipped,
    /// The instant is kept until the task of the one before has ended.
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
    /// Its payload; none: it was not asked for, or the task was purged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<Json>,
    /// Its result; none: there is none, or it was not asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Json>,
    /// What it waits or waited for, the first hundred.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub upstreams: Vec<Edge>,
    /// What waits for it, the first hundred.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub downstreams: Vec<Edge>,
    /// Why it does not run, if it has not ended and nobody has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<Why>,
}

/// Why a task does not run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Why {
    /// It was added, and no step of a worker has admitted it yet.
    NoStep,
    /// It waits for upstreams.
    Upstreams,
    /// Its time comes in this long.
    Time(Micros),
    /// The task in front of it in the line of its key, or the one that holds the key.
    Key(Option<TaskId>),
    /// The key is paused.
    KeyPaused,
    /// It is leased, and the lease of its worker has ended: the next step of another worker takes it back.
    Lost,
    /// No living worker serves its kind.
    Unserved,
    /// Its kind is paused.
    KindPaused,
    /// The queue is paused.
    Paused,
    /// As many run as may.
    Limit,
    /// Every living worker that serves its kind is under load, and takes only tasks with this priority or a higher one.
    Load(i32),
    /// No living worker that serves its kind, and takes its priority now, has room for its weight.
    Room,
    /// Nothing is in its way: the next worker that has room takes it, as its place comes.
    Next,
}

/// A page of tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// The tasks, by id.
    pub tasks: Vec<Stored>,
    /// Go on behind this one; none: that was all.
    pub next: Option<TaskId>,
    /// Whether these are all tasks of some states and kinds, and the counts say otherwise: rows were removed or added by
    /// hand. [`Change::Recount`](crate::Change::Recount) counts again.
    pub miscounted: bool,
}

/// A page of results of upstreams.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inputs {
    /// The results, by upstream.
    pub inputs: Vec<Input>,
    /// Go on behind this upstream; none: that was all.
    pub next: Option<TaskId>,
}

/// The result of an upstream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Input {
    /// What the downstream calls it; none: the upstream's id.
    pub name: Option<Key>,
    /// The upstream.
    pub up: TaskId,
    /// What becomes of the downstream if it does not end well.
    pub on_failure: OnFailure,
    /// How it ended.
    pub state: State,
    /// Its result, if it is done.
    pub result: Option<Json>,
}

/// A worker, as it is seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Worker {
    /// What is known of it.
    #[serde(flatten)]
    pub presence: Presence,
    /// In what time its lease ends; none: it has.
    pub alive_for: Option<Micros>,
    /// What it has, at most a hundred.
    pub holds: Vec<(TaskId, Token)>,
}

/// A key that is paused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PausedKey {
    /// The key.
    pub key: Key,
    /// How many tasks wait for it, at most [`MAX_COUNTED`](crate::MAX_COUNTED).
    pub tasks: u64,
    /// Since when it is paused, on the store's clock. `None`: that is not known.
    pub since: Option<Micros>,
}

/// How a queue is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Overview {
    /// The store's clock.
    pub at: Micros,
    /// What holds for all who use it.
    pub settings: Settings,
    /// Whether nothing is leased.
    pub paused: bool,
    /// Since when, on the store's clock. `None`: it is not paused, or that is not known.
    pub paused_at: Option<Micros>,
    /// Keys that are paused, by key, at most [`MAX_LISTED`](crate::MAX_LISTED).
    pub paused_keys: Vec<PausedKey>,
    /// How many tasks there are of each kind in each state, and how many there ever were.
    pub counts: Vec<(Kind, Counted, u64)>,
    /// How many workers live.
    pub workers: u64,
    /// How many tasks are leased to workers whose lease has ended: the next steps of other workers take them back.
    pub lost: u64,
    /// What is known of kinds.
    pub kinds: Vec<KindRow>,
    /// Kinds of which something waits and that no living worker serves.
    pub unserved: Vec<Kind>,
    /// Since when the task has been ready that has been so for longest, of the twenty most urgent ones. See
    /// [`Task::ready_since`].
    pub oldest: Option<Micros>,
    /// When the first of those that wait for their time is due.
    pub next: Option<Micros>,
    /// Whether the counts are seen to be wrong, since rows were removed or added by hand.
    /// [`Change::Recount`](crate::Change::Recount) counts again. Only what an overview looks at anyway is compared: the
    /// ready tasks if there are less than twenty, and whether one waits for its time.
    pub miscounted: bool,
}
