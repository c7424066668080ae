//! What may be asked of a store: more work, one step of a worker, a change, or a look.

use std::{collections::HashSet, sync::Arc};

use interval_queue_contract::{InvalidInput, Label, Micros, OnExisting};
use serde::{Deserialize, Serialize};

use crate::{
    Follow, Imported, Json, Key, Kind, MAX_ADD, MAX_DELAY, MAX_EDGES, MAX_HELD, MAX_KINDS, MAX_LEASE,
    MAX_PAGE, MAX_PRIORITY, MAX_TAGS, MAX_WEIGHT, MIN_LEASE, OnFailure, Overlap, PolicyOverride, Progress,
    Read, Room, Selector, SettingsChange, Tag, TaskId, Token, Unique, Verb, WorkerId,
};

/// One atomic command on the tasks of a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Command {
    /// More work, all or nothing.
    Add(Add),
    /// All that a worker tells the store and asks of it.
    Step(Step),
    /// Something that an operator wants.
    Change(Change),
    /// The tasks of one nominal instant of a schedule.
    Fire(Fire),
    /// Tasks that come from another place, all or nothing. Those whose ids are there stay as they are. The reply is
    /// that of an `add`.
    Import(Arc<[Imported]>),
    /// What has become of tasks since, for whoever follows: until it is asked no more, events are noted.
    Follow(Follow),
    /// A look, which changes nothing.
    Read(Read),
}

/// New tasks. Ids that are there, or came earlier in the batch, were added before; they stay as they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Add {
    /// The tasks. An edge may name an earlier one of them. A clone shares them: a retry costs no copy of a batch.
    pub tasks: Arc<[NewTask]>,
    /// How many tasks its producer has added before: the [position](crate::Task::position) of the first one. It orders
    /// the commands of a producer that the store carries out at the same instant of its clock.
    pub sequence: u32,
    /// How long ago the request was sent for the first time, by its sender's clock.
    pub age: Micros,
}

impl Add {
    /// Checks every bound but that of the payloads.
    ///
    /// # Errors
    ///
    /// Names the value and what would be right.
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

/// A task to be added.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewTask {
    /// Its id.
    pub id: TaskId,
    /// What handles it.
    #[serde(default)]
    pub kind: Kind,
    /// What its handler is given.
    pub payload: Json,
    /// From -100 to 100; the higher, the more urgent.
    #[serde(default)]
    pub priority: i32,
    /// What it has in common with tasks that must not run at once.
    #[serde(default)]
    pub key: Option<Key>,
    /// Whether tasks of its key run strictly in the order of adding. Give it to all tasks of a key or to none.
    #[serde(default)]
    pub ordered: bool,
    /// A name that one live task of the queue may have.
    #[serde(default)]
    pub unique: Option<Unique>,
    /// What happens if another task has that name.
    #[serde(default)]
    pub on_conflict: OnConflict,
    /// Not before.
    #[serde(default)]
    pub not_before: When,
    /// Started by then, or it has failed.
    #[serde(default)]
    pub deadline: Option<When>,
    /// The parts of the policy that it sets itself; the rest is the queue's.
    #[serde(default)]
    pub policy: PolicyOverride,
    /// How many slots of the pace its start takes, and how much of the capacity of its worker its run.
    #[serde(default = "one")]
    pub weight: u32,
    /// Words to find it by.
    #[serde(default)]
    pub tags: Vec<Tag>,
    /// What it waits for.
    #[serde(default)]
    pub edges: Vec<NewEdge>,
}

fn one() -> u32 {
    1
}

/// What a task waits for: said when it is added, or by [`Verb::Link`].
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct NewEdge {
    /// A task that is stored, or an earlier one of the same `add`.
    pub up: TaskId,
    /// What the task calls the upstream's result.
    #[serde(default)]
    pub name: Option<Key>,
    /// What becomes of the task if the upstream does not end well.
    #[serde(default)]
    pub on_failure: OnFailure,
}

impl From<TaskId> for NewEdge {
    /// A task that is cancelled if this one does not end well, and calls its result by its id.
    fn from(up: TaskId) -> Self {
        Self { up, name: None, on_failure: OnFailure::default() }
    }
}

/// What happens to a new task whose unique name another one has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnConflict {
    /// The one that is there stands, the new one is not added. The default.
    #[default]
    Keep,
    /// The one that is there becomes the new one, in its place and under its id, unless it is leased: then it stands.
    Replace,
    /// The whole `add` is refused with [`Conflict`](interval_queue_contract::StateErrorKind::Conflict).
    Refuse,
}

/// An instant on the store's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum When {
    /// So long after the store carries the command out.
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
    /// A task with this payload and nothing else that is not the default.
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
            edges: Vec::new(),
        }
    }

    /// Checks every bound but that of the payload, which the queue sets.
    ///
    /// # Errors
    ///
    /// Names the value and what would be right.
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

/// All that a worker tells the store and asks of it, in one round trip. It has one step under way at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The worker.
    pub worker: WorkerId,
    /// What a person calls it.
    pub label: Label,
    /// Rises with every step, also with one that is tried again. One that is not newer is refused.
    pub sequence: u64,
    /// The number of its last step that was answered; zero: none was.
    pub acknowledged: u64,
    /// How long after this step it counts as alive, and all that it has is leased to it.
    pub lease: Micros,
    /// What it can do, sorted.
    pub kinds: Vec<Kind>,
    /// What has ended, or was given back.
    pub complete: Vec<Completion>,
    /// All that it holds beside what it completes; none: as the store knows. A worker says it in its first step, after a
    /// step whose fate it does not know, and when it is told to restate.
    pub holding: Option<Vec<(TaskId, Token)>>,
    /// How far its runs are, of those of which there is news.
    pub progress: Vec<(TaskId, Token, Progress)>,
    /// How many tasks it would have.
    pub want: u32,
    /// Only those with this priority or a higher one; [`ABOVE_ALL`](crate::ABOVE_ALL): none.
    pub at_least: Option<i32>,
    /// How heavy they may be together: in their order, up to the first that does not fit; none: as heavy as they are.
    pub room: Option<Room>,
}

impl Step {
    /// The first step of a worker, which wants nothing yet.
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
            holding: Some(Vec::new()),
            progress: Vec::new(),
            want: 0,
            at_least: None,
            room: None,
        }
    }
}

/// The end of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The task.
    pub id: TaskId,
    /// The token of the run.
    pub token: Token,
    /// How it ended.
    pub outcome: Outcome,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// Well, with this result.
    Done(Json),
    /// With an error, which counts: again after a backoff, or failed after `max_attempts`.
    Error(String),
    /// It wants to be run again after this time, which is no failure; failed after `max_retries`.
    Retry(Micros, String),
    /// For good: it will never succeed.
    Failed(String),
    /// It was not run, or not to its end. Nothing counts.
    Released,
    /// The host of the worker could not run it, for this reason. Nothing counts.
    Unable(String),
    /// It was not begun: another one is chosen in its place.
    Exchanged,
}

/// A change by an operator or by an application.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// Create the queue with these settings over the defaults, or meet the one that is there. With
    /// [`OnExisting::Replace`] (or `Reset`) the settings given are the new truth, with `Fail` others are an error.
    Open(SettingsChange, OnExisting),
    /// Change settings; a queue that does not exist is created with them.
    Set(SettingsChange),
    /// Lease nothing any more; what runs goes on.
    Pause,
    /// Lease again.
    Resume,
    /// Pause or resume one kind.
    Kind(Kind, bool),
    /// Give one key a limit of its own: none: that of the queue, 0: it is paused.
    Key(Key, Option<u32>),
    /// Do something with selected tasks.
    Tasks(ChangeTasks),
    /// Make or replace a schedule.
    Schedule(NewSchedule),
    /// Remove a schedule. Its tasks stay.
    Unschedule(Key),
    /// Count the stored tasks again, after rows were removed or added by hand. It goes through all of them.
    Recount,
}

/// Something done with selected tasks, at most [`MAX_PAGE`](crate::MAX_PAGE) a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeTasks {
    /// Which.
    pub selector: Selector,
    /// What.
    pub verb: Verb,
    /// Only those behind this id: the last one that the command before has looked at.
    pub after: Option<TaskId>,
    /// Only those that were added before this instant of the store's clock: the `watermark` of the first reply.
    pub watermark: Option<Micros>,
    /// At most so many are touched.
    pub limit: u32,
    /// Whether nothing is done, only told what would be.
    pub dry_run: bool,
}

/// A schedule to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewSchedule {
    /// Its name.
    pub name: Key,
    /// What the worker makes tasks and instants of.
    pub definition: Json,
    /// Its first instant.
    pub next: Option<Micros>,
    /// Whether it makes nothing.
    pub paused: bool,
    /// What happens at an instant that comes while the task before has not ended.
    pub overlap: Overlap,
}

/// The tasks of one nominal instant, if it is still the next one of its schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fire {
    /// The schedule.
    pub schedule: Key,
    /// The revision that the worker has computed with.
    pub revision: u64,
    /// The instant.
    pub from: Micros,
    /// What it makes, each for a nominal instant: one task, one for each instant that was missed, or none.
    pub made: Vec<(Micros, NewTask)>,
    /// The instant after it; none: it was the last one.
    pub next: Option<Micros>,
}

impl Command {
    /// Whether it changes nothing.
    pub fn is_read(&self) -> bool {
        matches!(self, Self::Read(_))
    }

    /// Whether it creates the queue if it does not exist: tasks, workers, settings and pauses do. To end a pause or to
    /// change tasks needs a queue.
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

    /// Checks every bound. [`rules::apply`](crate::rules::apply) does it; a store with rules of its own calls it.
    ///
    /// # Errors
    ///
    /// Names the value and what would be right.
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
                let held = step.holding.as_ref().map_or(0, Vec::len) + step.complete.len();
                if held > MAX_HELD as usize || step.want > MAX_HELD {
                    return wrong(format!("{held} tasks held and {} wanted: at most {MAX_HELD}", step.want));
                }
                Ok(())
            }
            Self::Change(change) => match change {
                Change::Open(settings, _) | Change::Set(settings) => settings.check(),
                Change::Tasks(change) => {
                    if !(1..=MAX_PAGE).contains(&change.limit) {
                        return wrong(format!("limit {}: give 1 to {MAX_PAGE}", change.limit));
                    }
                    change.verb.check()?;
                    change.selector.check()
                }
                _ => Ok(()),
            },
            Self::Import(tasks) => crate::import::check(tasks),
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
