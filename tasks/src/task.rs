//! A task that is to be added.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use interval_queue::{InvalidInput, Micros};
use interval_queue_task_contract::{
    Json, Key, Kind, NewEdge, NewTask, OnConflict, OnFailure, Tag, TaskId, Unique, Until, When,
};
use serde::Serialize;
use uuid::Uuid;

use crate::error::Error;

/// A task that is to be [added](crate::TaskQueue::add): what handles it, what it is given, and on which terms.
/// Everything is checked when it is added.
///
/// ```
/// use std::time::Duration;
/// use interval_queue_tasks::Task;
///
/// let invoice = Task::new("invoice", &("Ada", 7)).key("customer 7").max_attempts(3);
/// let mail = Task::new("mail", &"Ada").after(invoice.id()).delay(Duration::from_secs(60)).priority(1);
/// assert!(invoice.id() < mail.id());
/// ```
///
/// A clone is the same task: it has its id, so that to add it once more adds nothing.
#[derive(Clone, Debug)]
#[must_use = "nothing is added before it is given to a queue"]
pub struct Task {
    new: NewTask,
    upstreams: Vec<(Upstream, Option<Key>, OnFailure)>,
    /// What it is called in its flow.
    name: Option<String>,
    wrong: Option<InvalidInput>,
    /// When it was sent to a store for the first time.
    sent: Arc<OnceLock<Instant>>,
}

/// What a task waits for: a task by its id, or one of the same [flow](crate::Flow) by its name there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Upstream {
    /// One that is stored, or comes earlier in the same [`add_all`](crate::TaskQueue::add_all).
    Id(TaskId),
    /// One that comes earlier in the same flow.
    Name(String),
}

impl From<TaskId> for Upstream {
    fn from(id: TaskId) -> Self {
        Self::Id(id)
    }
}

impl From<&str> for Upstream {
    fn from(name: &str) -> Self {
        Self::Name(name.to_owned())
    }
}

impl From<String> for Upstream {
    fn from(name: String) -> Self {
        Self::Name(name)
    }
}

impl Task {
    /// A task of this kind with what its handler is given. Its id is made now, time-ordered and above those of all
    /// tasks that this process made before. Among equally urgent tasks the first one added starts first.
    pub fn new(kind: impl AsRef<str>, payload: &(impl Serialize + ?Sized)) -> Self {
        let payload = Json::of(payload);
        let mut task = Self::json(kind, Json::default());
        match payload {
            Ok(payload) => task.new.payload = payload,
            Err(error) => task.refuse(InvalidInput::new(format!("the payload of a task: {error}"))),
        }
        task
    }

    /// The same, with a payload that is JSON already.
    pub fn json(kind: impl AsRef<str>, payload: Json) -> Self {
        let new = NewTask::new(TaskId::new(Uuid::now_v7()), payload);
        let task = Self { new, upstreams: Vec::new(), name: None, wrong: None, sent: Arc::default() };
        task.named(kind.as_ref(), Kind::new, |new, kind| new.kind = kind)
    }

    /// Its id.
    pub fn id(&self) -> TaskId {
        self.new.id
    }

    /// Another id: any UUID, such as one that is made of what the task is about, so that it is added once. Ids are
    /// remembered as long as the tasks are kept.
    pub fn with_id(mut self, id: TaskId) -> Self {
        self.new.id = id;
        self
    }

    /// From -100 to 100; the higher, the more urgent. Default 0. One step is worth a day of waiting, unless the queue
    /// has another [ageing](crate::Builder::ageing).
    pub fn priority(mut self, priority: i32) -> Self {
        self.new.priority = priority;
        self
    }

    /// What it has in common with tasks that must not run at once: one of a key runs at a time, or as many as the queue
    /// [says](crate::Builder::key_limit).
    pub fn key(self, key: impl AsRef<str>) -> Self {
        self.named(key.as_ref(), Key::new, |new, key| new.key = Some(key))
    }

    /// Tasks of its key run strictly in the order of adding, also when one waits to be tried again. Say it of all
    /// tasks of a key.
    pub fn ordered(mut self) -> Self {
        self.new.ordered = true;
        self
    }

    /// A name that one task of the queue has until it has ended. What happens to another one with that name says
    /// [`on_conflict`](Self::on_conflict).
    pub fn unique(self, name: impl AsRef<str>) -> Self {
        self.unique_until(name, Until::Ended)
    }

    /// The same until it is leased: what comes while it runs makes exactly one run more.
    pub fn unique_until_leased(self, name: impl AsRef<str>) -> Self {
        self.unique_until(name, Until::Leased)
    }

    fn unique_until(self, name: impl AsRef<str>, until: Until) -> Self {
        self.named(name.as_ref(), Key::new, |new, name| new.unique = Some(Unique { name, until }))
    }

    /// What happens if another task has its unique name. Default: [`OnConflict::Keep`]: the other one stands.
    pub fn on_conflict(mut self, on_conflict: OnConflict) -> Self {
        self.new.on_conflict = on_conflict;
        self
    }

    /// It starts so long after it is added, at the earliest; at most ten years.
    pub fn delay(mut self, delay: Duration) -> Self {
        self.new.not_before = When::After(Micros::from_duration(delay));
        self
    }

    /// It starts at this time of the store's clock, at the earliest.
    pub fn not_before(mut self, at: SystemTime) -> Self {
        self.new.not_before = When::At(since_epoch(at));
        self
    }

    /// So long after it is added it has failed, if it has not started by then; if it runs, it is stopped.
    pub fn deadline(mut self, within: Duration) -> Self {
        self.new.deadline = Some(When::After(Micros::from_duration(within)));
        self
    }

    /// The same at this time of the store's clock.
    pub fn deadline_at(mut self, at: SystemTime) -> Self {
        self.new.deadline = Some(When::At(since_epoch(at)));
        self
    }

    /// The failures after which it has failed; 1 runs it at most once. What a task does not set of the
    /// [policy](crate::Policy) is looked up in the queue when it is needed: a later change there holds for it, too.
    pub fn max_attempts(mut self, attempts: u32) -> Self {
        self.new.policy.max_attempts = Some(attempts);
        self
    }

    /// How often its runs may ask to be run again, in place of what the queue says.
    pub fn max_retries(mut self, retries: u32) -> Self {
        self.new.policy.max_retries = Some(retries);
        self
    }

    /// The wait after the first failure, doubled with each up to the longest, in place of what the queue says.
    pub fn backoff(mut self, first: Duration, longest: Duration) -> Self {
        self.new.policy.backoff = Some(Micros::from_duration(first));
        self.new.policy.max_backoff = Some(Micros::from_duration(longest));
        self
    }

    /// How long a run may take, in place of what the queue says.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.new.policy.timeout = Some(Micros::from_duration(timeout));
        self
    }

    /// How many slots of the pace its start takes, see [`Builder::interval`](crate::Builder::interval), and how much of
    /// the [capacity](crate::WorkerBuilder::capacity) of its worker its run. Default 1.
    pub fn weight(mut self, weight: u32) -> Self {
        self.new.weight = weight;
        self
    }

    /// A word to find it by; it may have several.
    pub fn tag(self, tag: impl AsRef<str>) -> Self {
        self.named(tag.as_ref(), Tag::new, |new, tag| {
            if !new.tags.contains(&tag) {
                new.tags.push(tag);
            }
        })
    }

    /// It starts after this one is done, and is cancelled if that one fails or is cancelled. Name a task that is
    /// stored, whether it waits, runs or has ended; or an earlier one of the same
    /// [`add_all`](crate::TaskQueue::add_all); or, by its name, an earlier one of the same [flow](crate::Flow).
    pub fn after(self, upstream: impl Into<Upstream>) -> Self {
        self.after_or(upstream, OnFailure::Cancel)
    }

    /// The same, and says what becomes of it if that one does not end well.
    pub fn after_or(mut self, upstream: impl Into<Upstream>, on_failure: OnFailure) -> Self {
        self.upstreams.push((upstream.into(), None, on_failure));
        self
    }

    /// It starts after this one is done, whose result is [its input](crate::Context::inputs) of this name. Without, the
    /// input has the name that the upstream has in the flow, or its id.
    pub fn input(self, name: impl AsRef<str>, upstream: impl Into<Upstream>) -> Self {
        self.input_or(name, upstream, OnFailure::Cancel)
    }

    /// The same, and says what becomes of it if that one does not end well.
    pub fn input_or(
        mut self,
        name: impl AsRef<str>,
        upstream: impl Into<Upstream>,
        on_failure: OnFailure,
    ) -> Self {
        match Key::new(name.as_ref()) {
            Ok(name) => self.upstreams.push((upstream.into(), Some(name), on_failure)),
            Err(error) => self.refuse(error),
        }
        self
    }

    fn named<T>(
        mut self,
        text: &str,
        make: impl FnOnce(String) -> Result<T, InvalidInput>,
        set: impl FnOnce(&mut NewTask, T),
    ) -> Self {
        match make(text.to_owned()) {
            Ok(value) => set(&mut self.new, value),
            Err(error) => self.refuse(error),
        }
        self
    }

    /// The first thing wrong is told.
    fn refuse(&mut self, error: InvalidInput) {
        self.wrong.get_or_insert(error);
    }

    pub(crate) fn has_edges(&self) -> bool {
        !self.upstreams.is_empty()
    }

    pub(crate) fn is_ordered(&self) -> bool {
        self.new.ordered
    }

    /// The names of its flow that it waits for.
    pub(crate) fn named_upstreams(&self) -> impl Iterator<Item = &str> {
        self.upstreams.iter().filter_map(|(upstream, ..)| match upstream {
            Upstream::Name(name) => Some(name.as_str()),
            Upstream::Id(_) => None,
        })
    }

    /// The task that is called so in a flow, whose earlier tasks have these ids.
    pub(crate) fn in_flow(mut self, name: &str, ids: &HashMap<String, TaskId>) -> Self {
        self.name = Some(name.to_owned());
        for (upstream, input, _) in &mut self.upstreams {
            if let Upstream::Name(name) = upstream
                && let Some(&id) = ids.get(name)
            {
                // A name in a flow is shorter than a key.
                *input = input.take().or_else(|| Key::new(name.as_str()).ok());
                *upstream = Upstream::Id(id);
            }
        }
        self
    }

    /// How long ago it was sent for the first time, which is now unless it was.
    pub(crate) fn age(&self, now: Instant) -> Duration {
        now.saturating_duration_since(*self.sent.get_or_init(|| now))
    }

    /// The form that the store is given.
    pub(crate) fn finish(self) -> Result<NewTask, Error> {
        let mut new = self.new;
        let mut wrong = self.wrong;
        for (upstream, name, on_failure) in self.upstreams {
            match upstream {
                Upstream::Id(up) => new.edges.push(NewEdge { up, name, on_failure }),
                Upstream::Name(name) => {
                    let text = format!(
                        "it waits for {name:?}, which is no task here: add it in a flow that has one of that name, or give the \
                         id of a task"
                    );
                    wrong.get_or_insert(InvalidInput::new(text));
                }
            }
        }
        match (wrong.map_or_else(|| new.check(), Err), self.name) {
            (Ok(()), _) => Ok(new),
            (Err(wrong), None) => Err(wrong.into()),
            (Err(wrong), Some(name)) => Err(Error::invalid(format!("task {name:?} of the flow: {wrong}"))),
        }
    }
}

/// On the store's clock. What lies before 1970 is in the past anyhow.
fn since_epoch(at: SystemTime) -> Micros {
    Micros::from_duration(at.duration_since(UNIX_EPOCH).unwrap_or_default())
}
