//! Commands to a store.

use std::{collections::HashSet, sync::Arc};

use interval_queue_contract::{InvalidInput, Label, Micros, OnExisting};
use serde::{Deserialize, Serialize};

use crate::{
    Cursor, Follow, FreeCapacity, Imported, Json, Key, Kind, MAX_ADD, MAX_DELAY, MAX_EDGES, MAX_HELD,
    MAX_KINDS, MAX_LEASE, MAX_PAGE, MAX_PRIORITY, MAX_TAGS, MAX_WEIGHT, MIN_LEASE, OnFailure, Overlap,
    PolicyOverride, Progress, Read, RunLog, Selector, SettingsChange, Tag, TaskId, Token, Traceparent,
    Unique, Verb, WorkerId,
};

/// An atomic command on the tasks of one queue.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Command {
    /// Adds tasks, all or none.
    Add(Add),
    /// A worker's poll.
    Step(Step),
    /// A change by an operator or an application.
    Change(Change),
    /// Adds the tasks of a schedule's instant.
    Fire(Fire),
    /// Adds tasks of another queue, all or none. Stored ids change nothing. Replies
    /// [`Reply::Added`](crate::Reply::Added).
    Import(Arc<[Imported]>),
    /// Returns events, and keeps them recorded for a while.
    Follow(Follow),
    /// A read; changes nothing.
    Read(Read),
}

/// New tasks. An id that is stored already, or repeated, changes nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Add {
    /// The tasks. Edges may name earlier ones. Clones share them.
    pub tasks: Arc<[NewTask]>,
    /// [Position](crate::Task::position) of the first task: number of its producer's earlier tasks.
    pub sequence: u32,
    /// Time since the first sending, by the sender's clock.
    pub age: Micros,
}

impl Add {
    /// Checks all bounds except payload sizes.
    ///
    /// # Errors
    ///
    /// Names the invalid value and the accepted ones.
    pub fn check(&self) -> Result<(), InvalidInput> {
        let many = self.tasks.len();
        if many > MAX_ADD {
            return Err(InvalidInput::new(format!(
                "{many} tasks at once: add at most {MAX_ADD}, in several batches"
            )));
        }
        if self.sequence > u32::MAX - MAX_ADD as u32 {
            let most = u32::MAX - MAX_ADD as u32;
            let text = format!("sequence {}: give at most {most}, and begin again at 0", self.sequence);
            return Err(InvalidInput::new(text));
        }
        self.tasks.iter().try_for_each(NewTask::check)
    }
}

/// A task to add.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewTask {
    /// The id.
    pub id: TaskId,
    /// Names its handler.
    #[serde(default)]
    pub kind: Kind,
    /// The handler's input.
    pub payload: Json,
    /// From -100 to 100; higher is more urgent.
    #[serde(default)]
    pub priority: i32,
    /// At most `key_limit` tasks of one key run at once.
    #[serde(default)]
    pub key: Option<Key>,
    /// Whether tasks of the key run strictly in order of adding. Set it on all tasks of a key or on
    /// none.
    #[serde(default)]
    pub ordered: bool,
    /// At most one live task holds this name.
    #[serde(default)]
    pub unique: Option<Unique>,
    /// Action if another task holds the unique name.
    #[serde(default)]
    pub on_conflict: OnConflict,
    /// Earliest start.
    #[serde(default)]
    pub not_before: When,
    /// Latest start, else the task fails.
    #[serde(default)]
    pub deadline: Option<When>,
    /// Parts of the policy that override the queue's.
    #[serde(default)]
    pub policy: PolicyOverride,
    /// Slots of the rate limit per start, and worker capacity per run.
    #[serde(default = "one")]
    pub weight: u32,
    /// Words to find the task by.
    #[serde(default)]
    pub tags: Vec<Tag>,
    /// The trace in which it is added.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<Traceparent>,
    /// Upstreams to wait for.
    #[serde(default)]
    pub edges: Vec<NewEdge>,
}

pub(crate) fn one() -> u32 {
    1
}

/// An edge to an upstream, made by an `add` or by [`Verb::Link`].
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct NewEdge {
    /// A stored task, or an earlier one of the `add`.
    pub up: TaskId,
    /// Name of the upstream's result. `None`: the upstream's id.
    #[serde(default)]
    pub name: Option<Key>,
    /// Effect of an upstream that fails or is cancelled.
    #[serde(default)]
    pub on_failure: OnFailure,
}

impl From<TaskId> for NewEdge {
    /// An edge with [`OnFailure::Cancel`] and no name.
    fn from(up: TaskId) -> Self {
        Self { up, name: None, on_failure: OnFailure::default() }
    }
}

/// Action if another task holds a new task's unique name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnConflict {
    /// Keep the existing task, do not add the new one. The default.
    #[default]
    Keep,
    /// Give the existing task the new content; id and time of adding stay. A leased task is kept.
    Replace,
    /// Reject the whole `add` with [`Conflict`](interval_queue_contract::StateErrorKind::Conflict).
    Refuse,
}

/// An instant on the store's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum When {
    /// This long after the store applies the command.
    After(Micros),
    /// This instant.
    At(Micros),
}

impl Default for When {
    /// At once.
    fn default() -> Self {
        Self::After(Micros::ZERO)
    }
}

impl When {
    pub(crate) fn on(self, now: Micros) -> Micros {
        match self {
            Self::After(delay) => now + delay,
            Self::At(at) => at,
        }
    }

    pub(crate) fn check(self, what: &str) -> Result<(), InvalidInput> {
        match self {
            Self::After(delay) if delay > MAX_DELAY => {
                Err(InvalidInput::new(format!("{what} {:?}: give at most ten years", delay.to_duration())))
            }
            _ => Ok(()),
        }
    }
}

pub(crate) fn check_priority(priority: i32) -> Result<(), InvalidInput> {
    if !(-MAX_PRIORITY..=MAX_PRIORITY).contains(&priority) {
        return Err(InvalidInput::new(format!(
            "priority {priority}: give -{MAX_PRIORITY} to {MAX_PRIORITY}"
        )));
    }
    Ok(())
}

impl NewTask {
    /// A task with this payload and defaults.
    pub fn new(id: TaskId, payload: Json) -> Self {
        Self {
            id,
            kind: Kind::default(),
            payload,
            priority: 0,
            key: None,
            ordered: false,
            unique: None,
            on_conflict: OnConflict::default(),
            not_before: When::default(),
            deadline: None,
            policy: PolicyOverride::default(),
            weight: 1,
            tags: Vec::new(),
            trace: None,
            edges: Vec::new(),
        }
    }

    /// Checks all bounds except the payload's size.
    ///
    /// # Errors
    ///
    /// Names the invalid value and the accepted ones.
    pub fn check(&self) -> Result<(), InvalidInput> {
        let wrong = |text: String| Err(InvalidInput::new(text));
        check_priority(self.priority)?;
        if !(1..=MAX_WEIGHT).contains(&self.weight) {
            return wrong(format!("weight {}: give 1 to {MAX_WEIGHT} slots", self.weight));
        }
        if self.ordered && self.key.is_none() {
            return wrong("an ordered task needs a key: tasks of one key run in order".into());
        }
        if self.tags.len() > MAX_TAGS {
            return wrong(format!("{} tags: give at most {MAX_TAGS}", self.tags.len()));
        }
        if self.edges.len() > MAX_EDGES {
            return wrong(format!("{} upstreams: name at most {MAX_EDGES}", self.edges.len()));
        }
        if self.on_conflict == OnConflict::Replace && !self.edges.is_empty() {
            return wrong(
                "a task with upstreams cannot replace another one: add it under a name of its own".into(),
            );
        }
        if self.edges.iter().any(|edge| edge.up == self.id) {
            return wrong(format!("task {} waits for itself: name earlier tasks", self.id));
        }
        let ups: HashSet<TaskId> = self.edges.iter().map(|edge| edge.up).collect();
        if ups.len() < self.edges.len() {
            return wrong(format!("task {} names an upstream twice: name each once", self.id));
        }
        self.not_before.check("delay")?;
        self.deadline.map_or(Ok(()), |deadline| deadline.check("deadline"))?;
        self.policy.check()
    }
}

/// A worker's poll: report and request in one round trip, at most one under way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Step {
    /// The worker.
    pub worker: WorkerId,
    /// The worker's name for people.
    pub label: Label,
    /// Rises with every step, including retries; a step that is not newer is rejected.
    pub sequence: u64,
    /// Sequence of the last answered step. 0: none.
    pub acknowledged: u64,
    /// Duration of the lease of all the worker's tasks, from this step on.
    pub lease: Micros,
    /// Kinds that the worker handles, sorted.
    pub kinds: Vec<Kind>,
    /// Runs that ended or were given back.
    pub complete: Vec<Completion>,
    /// All held leases except those in `complete`. `None`: as the store knows. Required in the
    /// first step, after a step with unknown outcome, and to resync.
    pub held: Option<Vec<(TaskId, Token)>>,
    /// Progress of runs since the last step.
    pub progress: Vec<(TaskId, Token, Progress)>,
    /// Lines that runs have logged, applied before `complete`.
    pub log: Vec<RunLog>,
    /// Maximum number of tasks to lease for free permits.
    pub want: u32,
    /// Maximum number of tasks to lease beyond `want`, for permits that will be free soon. If the
    /// worker dies they count as given back, not as failed.
    pub ahead: u32,
    /// Lowest priority to lease. `None`: any. [`ABOVE_ALL`](crate::ABOVE_ALL): lease none.
    pub at_least: Option<i32>,
    /// Free capacity: leasing ends at the first task that does not fit. `None`: unlimited.
    pub free_capacity: Option<FreeCapacity>,
}

impl Step {
    /// A worker's first step, which requests no tasks.
    pub fn first(worker: WorkerId, kinds: impl IntoIterator<Item = Kind>, lease: Micros) -> Self {
        let mut kinds: Vec<_> = kinds.into_iter().collect();
        kinds.sort();
        kinds.dedup();
        Self {
            worker,
            label: Label::default(),
            sequence: 1,
            acknowledged: 0,
            lease,
            kinds,
            complete: Vec::new(),
            held: Some(Vec::new()),
            progress: Vec::new(),
            log: Vec::new(),
            want: 0,
            ahead: 0,
            at_least: None,
            free_capacity: None,
        }
    }

    /// Maximum number of tasks to lease.
    pub fn limit(&self) -> u32 {
        self.want.saturating_add(self.ahead)
    }
}

/// The end of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Completion {
    /// The task.
    pub id: TaskId,
    /// The token of the run.
    pub token: Token,
    /// How the run ended.
    pub outcome: Outcome,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Outcome {
    /// Success, with this result.
    Done(Json),
    /// An error that counts: retried after a backoff, or failed after `max_attempts`.
    Error(String),
    /// A request to run again after this time, with a reason. No failure, but `max_retries`
    /// applies.
    Retry(Micros, String),
    /// A permanent failure.
    Failed(String),
    /// Given back, not run or not to its end. Nothing counts.
    Released,
    /// Not run, because the worker's host could not. Nothing counts.
    Unable(String),
    /// Never begun: the worker leases another task in its place.
    Exchanged,
}

/// A change by an operator or an application.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
#[allow(clippy::large_enum_variant, reason = "there is one of it at a time")]
pub enum Change {
    /// Create the queue with these settings over the defaults, or open the existing one. If its
    /// settings differ, [`OnExisting::Replace`] and `Reset` store the given ones; `Fail` is an
    /// error.
    Open(SettingsChange, OnExisting),
    /// Change settings, or create the queue with them.
    Set(SettingsChange),
    /// Stop leasing tasks. Runs go on.
    Pause,
    /// Lease tasks again.
    Resume,
    /// Pause (true) or resume one kind.
    Kind(Kind, bool),
    /// Limit one key. `None`: as the queue. 0: paused.
    Key(Key, Option<u32>),
    /// Apply a verb to selected tasks.
    Tasks(ChangeTasks),
    /// Create or replace a schedule.
    Schedule(NewSchedule),
    /// Remove a schedule. Its tasks stay.
    Unschedule(Key),
    /// Recount all stored tasks, after rows were removed or added by hand.
    Recount,
    /// End the lease of a dead worker: the runs of its tasks have failed once. If it lives, its
    /// next step reports this and its completions are refused.
    DeclareLost(WorkerId),
    /// Add a note to a task's log, of at most [`MAX_LOG_TEXT`](crate::MAX_LOG_TEXT) characters.
    Note(TaskId, String),
}

/// A verb for selected tasks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ChangeTasks {
    /// The tasks.
    pub selector: Selector,
    /// The action.
    pub verb: Verb,
    /// Only tasks added after this one: `next` of the previous reply.
    pub after: Option<Cursor>,
    /// Only tasks added before this instant: `watermark` of the first reply. `None`: until now.
    pub watermark: Option<Micros>,
    /// Maximum number of tasks, 1 to [`MAX_PAGE`](crate::MAX_PAGE).
    pub limit: u32,
    /// Whether to report the effect without applying it.
    pub dry_run: bool,
}

/// A schedule to create or replace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NewSchedule {
    /// The name.
    pub name: Key,
    /// Template and rule, which only workers read.
    pub definition: Json,
    /// First instant. `None`: never.
    pub next: Option<Micros>,
    /// Whether the schedule is paused.
    pub paused: bool,
    /// Action if the previous task has not ended.
    pub overlap: Overlap,
}

/// The tasks of a schedule's next or kept instant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fire {
    /// The schedule.
    pub schedule: Key,
    /// Revision of the schedule that the worker used.
    pub revision: u64,
    /// The nominal instant.
    pub from: Micros,
    /// Tasks with their nominal instants, of none, one or several instants. An instant's tasks are
    /// consecutive, each after its upstreams; the last has the id [`TaskId::of_schedule`].
    pub made: Vec<(Micros, NewTask)>,
    /// The instant after `from`. `None`: never again.
    pub next: Option<Micros>,
}

impl Command {
    /// Whether the command is a read.
    pub fn is_read(&self) -> bool {
        matches!(self, Self::Read(_))
    }

    /// Whether the command creates a missing queue.
    pub fn creates_queue(&self) -> bool {
        match self {
            Self::Add(_) | Self::Step(_) => true,
            Self::Change(change) => matches!(
                change,
                Change::Open(..)
                    | Change::Set(_)
                    | Change::Pause
                    | Change::Kind(_, true)
                    | Change::Key(_, Some(_))
                    | Change::Schedule(_)
            ),
            _ => false,
        }
    }

    /// Checks all bounds, as [`rules::apply`](crate::rules::apply) does, for stores with rules of
    /// their own.
    ///
    /// # Errors
    ///
    /// Names the invalid value and the accepted ones.
    pub fn check(&self) -> Result<(), InvalidInput> {
        let wrong = |text: String| Err(InvalidInput::new(text));
        match self {
            Self::Add(add) => add.check(),
            Self::Step(step) => {
                if !(MIN_LEASE..=MAX_LEASE).contains(&step.lease) {
                    return wrong(format!("lease {:?}: give 1 s to a day", step.lease.to_duration()));
                }
                if step.kinds.len() > MAX_KINDS {
                    return wrong(format!("{} kinds: serve at most {MAX_KINDS}", step.kinds.len()));
                }
                let held = step.held.as_ref().map_or(0, Vec::len) + step.complete.len();
                if held > MAX_HELD as usize || step.limit() > MAX_HELD {
                    return wrong(format!(
                        "{held} tasks held and {} wanted: at most {MAX_HELD}",
                        step.limit()
                    ));
                }
                step.log.iter().try_for_each(RunLog::check)
            }
            Self::Change(change) => match change {
                Change::Note(_, text) => crate::log::check_line(text),
                Change::Open(settings, _) | Change::Set(settings) => settings.check(),
                Change::Tasks(change) => {
                    if !(1..=MAX_PAGE).contains(&change.limit) {
                        return wrong(format!("limit {}: give 1 to {MAX_PAGE}", change.limit));
                    }
                    change.verb.check()?;
                    crate::read_types::check_oldest(&change.selector, change.after)
                }
                _ => Ok(()),
            },
            Self::Import(tasks) => crate::import_types::check(tasks),
            Self::Follow(follow) => follow.check(),
            Self::Fire(fire) => {
                if fire.next.is_some_and(|next| next <= fire.from) {
                    return wrong(format!(
                        "schedule {}: the next instant is not behind this one",
                        fire.schedule
                    ));
                }
                if fire.made.len() > MAX_ADD {
                    return wrong(format!("{} tasks at once: make at most {MAX_ADD}", fire.made.len()));
                }
                fire.made.iter().try_for_each(|(_, task)| task.check())
            }
            Self::Read(read) => read.check(),
        }
    }
}
