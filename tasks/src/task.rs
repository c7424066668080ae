//! `Task`: a task to be added.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use interval_queue::{InvalidInput, Micros};
use interval_queue_task_contract::{
    Json, Key, Kind, NewEdge, NewTask, OnConflict, OnFailure, Tag, TaskId, Traceparent, Unique, Until, When,
};
use serde::Serialize;
use uuid::Uuid;

use crate::error::Error;

/// A task to be [added](crate::TaskQueue::add): kind, payload and options, checked when it is
/// added.
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
/// A clone keeps the id, so adding both adds one task.
#[derive(Clone, Debug)]
#[must_use = "nothing is added before it is given to a queue"]
pub struct Task {
    new: NewTask,
    upstreams: Vec<(Upstream, Option<Key>, OnFailure)>,
    /// Name in the flow.
    name: Option<String>,
    wrong: Option<InvalidInput>,
    /// First sending, shared by clones.
    sent: Arc<OnceLock<Instant>>,
}

/// An upstream: a task by its id, or by its name in the same [flow](crate::Flow).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Upstream {
    /// A stored task, or an earlier one of the same [`add_all`](crate::TaskQueue::add_all).
    Id(TaskId),
    /// Another task of the same flow.
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
    /// A task with a payload for its handler. The id is made now: time-ordered, and above all ids
    /// that this process made before. Equally urgent tasks start in the order of adding.
    pub fn new(kind: impl AsRef<str>, payload: &(impl Serialize + ?Sized)) -> Self {
        let payload = Json::of(payload);
        let mut task = Self::json(kind, Json::default());
        match payload {
            Ok(payload) => task.new.payload = payload,
            Err(error) => task.refuse(InvalidInput::new(format!("the payload of a task: {error}"))),
        }
        task
    }

    /// As [`new`](Self::new), with a payload that is already JSON.
    pub fn json(kind: impl AsRef<str>, payload: Json) -> Self {
        let new = NewTask::new(TaskId::new(Uuid::now_v7()), payload);
        let task = Self { new, upstreams: Vec::new(), name: None, wrong: None, sent: Arc::default() };
        task.named(kind.as_ref(), Kind::new, |new, kind| new.kind = kind)
    }

    /// The task's id.
    pub fn id(&self) -> TaskId {
        self.new.id
    }

    /// Sets the id to any UUID, such as one derived from the task's subject, so that it is added
    /// only once while the task is kept.
    pub fn with_id(mut self, id: TaskId) -> Self {
        self.new.id = id;
        self
    }

    /// From -100 to 100; higher is more urgent. Default 0. One step is worth a day of waiting, or
    /// the queue's [ageing](crate::Builder::ageing).
    pub fn priority(mut self, priority: i32) -> Self {
        self.new.priority = priority;
        self
    }

    /// Tasks of one key run one at a time, or up to the queue's [limit](crate::Builder::key_limit).
    pub fn key(self, key: impl AsRef<str>) -> Self {
        self.named(key.as_ref(), Key::new, |new, key| new.key = Some(key))
    }

    /// Tasks of the key run strictly in the order of adding, even while one waits for a retry. Set
    /// it on all tasks of the key.
    pub fn ordered(mut self) -> Self {
        self.new.ordered = true;
        self
    }

    /// A name that only one live task of the queue can hold, until it ends. See
    /// [`on_conflict`](Self::on_conflict).
    pub fn unique(self, name: impl AsRef<str>) -> Self {
        self.unique_until(name, Until::Ended)
    }

    /// As [`unique`](Self::unique), but only until the task is leased: adds during its run make
    /// exactly one more run.
    pub fn unique_until_leased(self, name: impl AsRef<str>) -> Self {
        self.unique_until(name, Until::Leased)
    }

    fn unique_until(self, name: impl AsRef<str>, until: Until) -> Self {
        self.named(name.as_ref(), Key::new, |new, name| new.unique = Some(Unique { name, until }))
    }

    /// Action if another task holds the unique name. Default: [`OnConflict::Keep`]: this task is
    /// not added.
    pub fn on_conflict(mut self, on_conflict: OnConflict) -> Self {
        self.new.on_conflict = on_conflict;
        self
    }

    /// Earliest start after adding; at most ten years.
    pub fn delay(mut self, delay: Duration) -> Self {
        self.new.not_before = When::After(Micros::from_duration(delay));
        self
    }

    /// Earliest start on the store's clock.
    pub fn not_before(mut self, at: SystemTime) -> Self {
        self.new.not_before = When::At(since_epoch(at));
        self
    }

    /// Stores the trace in which the task is added, as a W3C `traceparent`:
    /// [`Context::traceparent`](crate::Context::traceparent) returns it to the run. With the feature
    /// `opentelemetry` it is that of the current span unless set here.
    pub fn traceparent(self, traceparent: impl AsRef<str>) -> Self {
        self.named(traceparent.as_ref(), Traceparent::new, |new, trace| new.trace = Some(trace))
    }

    /// Latest start after adding: a task not started by then fails, and a run is asked to stop.
    pub fn deadline(mut self, within: Duration) -> Self {
        self.new.deadline = Some(When::After(Micros::from_duration(within)));
        self
    }

    /// As [`deadline`](Self::deadline), on the store's clock.
    pub fn deadline_at(mut self, at: SystemTime) -> Self {
        self.new.deadline = Some(When::At(since_epoch(at)));
        self
    }

    /// Failures after which the task has failed; 1: it runs at most once. [Policy](crate::Policy)
    /// parts that a task does not set are read from its kind or queue when needed, so later changes apply.
    pub fn max_attempts(mut self, attempts: u32) -> Self {
        self.new.policy.max_attempts = Some(attempts);
        self
    }

    /// How often runs may ask to run again. Overrides the queue's policy.
    pub fn max_retries(mut self, retries: u32) -> Self {
        self.new.policy.max_retries = Some(retries);
        self
    }

    /// Delay after the first failure, doubled after each, up to `longest`. Overrides the queue's
    /// policy.
    pub fn backoff(mut self, first: Duration, longest: Duration) -> Self {
        self.new.policy.backoff = Some(Micros::from_duration(first));
        self.new.policy.max_backoff = Some(Micros::from_duration(longest));
        self
    }

    /// Maximum duration of a run. Overrides the queue's policy.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.new.policy.timeout = Some(Micros::from_duration(timeout));
        self
    }

    /// Slots of the [rate](crate::Builder::interval) that the start takes, and units of the
    /// worker's [capacity](crate::WorkerBuilder::capacity) that the run takes. Default 1.
    pub fn weight(mut self, weight: u32) -> Self {
        self.new.weight = weight;
        self
    }

    /// Adds a tag to find the task by.
    pub fn tag(self, tag: impl AsRef<str>) -> Self {
        self.named(tag.as_ref(), Tag::new, |new, tag| {
            if !new.tags.contains(&tag) {
                new.tags.push(tag);
            }
        })
    }

    /// Starts the task once `upstream` is done; cancels it if the upstream fails or is cancelled.
    /// The upstream is a stored task in any state, or an earlier one of the same
    /// [`add_all`](crate::TaskQueue::add_all) or, by name, of the same [flow](crate::Flow).
    pub fn after(self, upstream: impl Into<Upstream>) -> Self {
        self.after_or(upstream, OnFailure::Cancel)
    }

    /// As [`after`](Self::after), with the action if the upstream does not succeed.
    pub fn after_or(mut self, upstream: impl Into<Upstream>, on_failure: OnFailure) -> Self {
        self.upstreams.push((upstream.into(), None, on_failure));
        self
    }

    /// As [`after`](Self::after), and names the upstream's result among the
    /// [inputs](crate::Context::inputs). Default: the upstream's name in the flow, or its id.
    pub fn input(self, name: impl AsRef<str>, upstream: impl Into<Upstream>) -> Self {
        self.input_or(name, upstream, OnFailure::Cancel)
    }

    /// As [`input`](Self::input), with the action if the upstream does not succeed.
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

    /// `finish` returns the first error.
    fn refuse(&mut self, error: InvalidInput) {
        self.wrong.get_or_insert(error);
    }

    pub(crate) fn has_edges(&self) -> bool {
        !self.upstreams.is_empty()
    }

    pub(crate) fn is_ordered(&self) -> bool {
        self.new.ordered
    }

    pub(crate) fn named_upstreams(&self) -> impl Iterator<Item = &str> {
        self.upstreams.iter().filter_map(|(upstream, ..)| match upstream {
            Upstream::Name(name) => Some(name.as_str()),
            Upstream::Id(_) => None,
        })
    }

    /// Resolves its upstreams by `ids`, those of earlier tasks.
    pub(crate) fn in_flow(mut self, name: &str, ids: &HashMap<String, TaskId>) -> Self {
        self.name = Some(name.to_owned());
        for (upstream, input, _) in &mut self.upstreams {
            if let Upstream::Name(name) = upstream
                && let Some(&id) = ids.get(name)
            {
                // Never fails: names in a flow are shorter than keys.
                *input = input.take().or_else(|| Key::new(name.as_str()).ok());
                *upstream = Upstream::Id(id);
            }
        }
        self
    }

    /// The first call, with `now`, counts as the first sending.
    pub(crate) fn age(&self, now: Instant) -> Duration {
        now.saturating_duration_since(*self.sent.get_or_init(|| now))
    }

    /// Returns the first error of all calls.
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

/// Times before 1970 become 1970: both are past.
fn since_epoch(at: SystemTime) -> Micros {
    Micros::from_duration(at.duration_since(UNIX_EPOCH).unwrap_or_default())
}
