//! The row of a task.

use std::fmt;

use interval_queue_contract::Micros;
use serde::{Deserialize, Serialize};

use crate::{Key, Kind, PolicyOverride, Tag, TaskId, Token, Traceparent, WorkerId, command::one};

/// A task without payload and result, which no rule reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// The id.
    pub id: TaskId,
    /// Names its handler.
    pub kind: Kind,
    /// Higher is more urgent.
    #[serde(default)]
    pub priority: i32,
    /// At most `key_limit` tasks of one key run at once.
    pub key: Option<Key>,
    /// Whether tasks of the key run strictly one after the other, in order of adding.
    #[serde(default)]
    pub ordered: bool,
    /// At most one live task holds this name.
    pub unique: Option<Unique>,
    /// Whether the task holds its unique name now.
    #[serde(default)]
    pub holds_name: bool,
    /// Slots of the rate limit per start, and worker capacity per run.
    #[serde(default = "one")]
    pub weight: u32,
    /// Words to find the task by.
    #[serde(default)]
    pub tags: Vec<Tag>,
    /// Latest start, on the store's clock: later the task fails; a run is asked to stop.
    pub deadline: Option<Micros>,
    /// Earliest start, on the store's clock. Zero: at once.
    #[serde(default)]
    pub not_before: Micros,
    /// Parts of the policy that override the queue's.
    #[serde(default)]
    pub policy: PolicyOverride,
    /// Rank among ready tasks: lower is more urgent.
    pub due: i64,
    /// When it was added, on the store's clock.
    pub added: Micros,
    /// Number among the producer's tasks, which orders tasks added at the same instant.
    #[serde(default)]
    pub position: u32,
    /// Whether the task has, or had, upstreams.
    #[serde(default)]
    pub has_edges: bool,
    /// The schedule that made the task, and for which instant.
    pub schedule: Option<Nominal>,
    /// The trace in which the task was added.
    pub trace: Option<Traceparent>,

    /// The gate at which the task waits, or how it ended.
    pub state: State,
    /// Whether the task holds a permit of its key: when ready, leased, ordered and waiting for a
    /// retry, or completed within a transaction and not notified.
    #[serde(default)]
    pub holds_key: bool,
    /// Whether the `blocked` task does not compete for its key, because its kind is paused or
    /// unhandled.
    #[serde(default)]
    pub unserved: bool,
    /// The token of the last lease.
    #[serde(default)]
    pub token: Token,
    /// Runs counted against `max_attempts`.
    #[serde(default)]
    pub failures: u32,
    /// Requests to run again, counted against `max_retries`.
    #[serde(default)]
    pub retries: u32,
    /// Uncounted returns in a row.
    #[serde(default)]
    pub returns: u32,
    /// Rises with each retry of the ended task.
    #[serde(default)]
    pub generation: u32,
    /// The worker that holds the task, or held it last.
    pub worker: Option<WorkerId>,
    /// When the task last became ready after waiting for upstreams or its key, on the store's
    /// clock.
    pub admitted: Option<Micros>,
    /// When the task was last leased, on the store's clock.
    pub leased: Option<Micros>,
    /// Whether the last lease was ahead of a free permit: if its worker is lost, the run may not
    /// have begun.
    #[serde(default)]
    pub prefetched: bool,
    /// Pending request to stop the run.
    pub stop: Option<Stop>,
    /// Progress reported by the run.
    pub progress: Option<Progress>,
    /// When the task ended, on the store's clock.
    pub ended: Option<Micros>,
    /// When the task ended, on the lease clock.
    pub ended_lease_clock: Option<Micros>,
    /// Whether all downstreams were notified of the end.
    #[serde(default)]
    pub notified: bool,
    /// Whether an ended task past its retention is kept for dependents.
    #[serde(default)]
    pub retained: bool,
    /// Why the last run failed, or why the task cannot go on.
    pub error: Option<String>,
    /// Earlier runs, oldest first: the last [`MAX_HISTORY`](crate::MAX_HISTORY).
    #[serde(default)]
    pub history: Vec<Attempt>,
}

/// The gate at which a task waits, or how it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Added; no poll has admitted it yet.
    Added,
    /// Waits for upstreams.
    Waiting,
    /// Waits for its time.
    Scheduled,
    /// Waits for a permit of its key.
    Blocked,
    /// Can be leased.
    Ready,
    /// Held by a worker.
    Leased,
    /// Succeeded.
    Done,
    /// Failed for good.
    Failed,
    /// Cancelled.
    Cancelled,
    /// Purged by hand, or added in place of the holder of its unique name. The id is kept for a
    /// while, so that a repeated `add` does not run it again.
    Purged,
}

impl State {
    /// All states, in the order of a task's life.
    pub const ALL: [Self; 10] = [
        Self::Added,
        Self::Waiting,
        Self::Scheduled,
        Self::Blocked,
        Self::Ready,
        Self::Leased,
        Self::Done,
        Self::Failed,
        Self::Cancelled,
        Self::Purged,
    ];

    /// Whether a task in this state runs again only if it is retried.
    pub fn is_ended(self) -> bool {
        matches!(self, Self::Done | Self::Failed | Self::Cancelled | Self::Purged)
    }

    /// Name in stores, documents and selectors.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Waiting => "waiting",
            Self::Scheduled => "scheduled",
            Self::Blocked => "blocked",
            Self::Ready => "ready",
            Self::Leased => "leased",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Purged => "purged",
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl std::str::FromStr for State {
    type Err = interval_queue_contract::InvalidInput;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|state| state.as_str() == text).ok_or_else(|| {
            let known = Self::ALL.map(Self::as_str).join(", ");
            Self::Err::new(format!("{text:?} is no state: take one of {known}"))
        })
    }
}

/// At most one live task holds this name.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Unique {
    /// The name.
    pub name: Key,
    /// When the task releases the name.
    pub until: Until,
}

/// When a task releases its unique name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Until {
    /// When it ends. The default.
    #[default]
    Ended,
    /// When it is leased: tasks added during its run cause exactly one more.
    Leased,
}

impl Until {
    /// Name in stores.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ended => "ended",
            Self::Leased => "leased",
        }
    }
}

/// A request to stop a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stop {
    /// End it: the task is cancelled.
    Cancel,
    /// End it: the deadline has passed.
    Deadline,
    /// Give it back for another worker.
    Release,
}

impl Stop {
    /// Name in stores.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cancel => "cancel",
            Self::Deadline => "deadline",
            Self::Release => "release",
        }
    }
}

/// Progress of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// Amount done, of `total`.
    #[serde(with = "exact")]
    pub done: u64,
    /// Total amount. Zero: unknown.
    #[serde(with = "exact")]
    pub total: u64,
    /// The current activity.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
}

/// Binary formats get digits: their readers may have only floats.
mod exact {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
    pub(super) fn serialize<S: Serializer>(number: &u64, serializer: S) -> Result<S::Ok, S::Error> {
        match serializer.is_human_readable() {
            true => serializer.serialize_u64(*number),
            false => serializer.collect_str(number),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
        match deserializer.is_human_readable() {
            true => u64::deserialize(deserializer),
            false => String::deserialize(deserializer)?.parse().map_err(D::Error::custom),
        }
    }
}

/// A past run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// The token.
    pub token: Token,
    /// The worker that ran it.
    pub worker: Option<WorkerId>,
    /// When the run was leased.
    pub leased: Option<Micros>,
    /// When the store received the end.
    pub ended: Micros,
    /// How the run ended.
    pub end: AttemptEnd,
    /// Why, if it did not succeed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AttemptEnd {
    /// Succeeded.
    Done,
    /// Failed.
    Error,
    /// Asked to run again.
    Retry,
    /// Given back.
    Released,
    /// Stopped on request.
    Stopped,
    /// The worker did not renew its lease.
    Died,
    /// The lease never reached the worker, or the run may not have begun when the worker was lost.
    Lost,
}

/// The nominal instant of a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Nominal {
    /// The schedule.
    pub schedule: Key,
    /// The instant.
    pub at: Micros,
}

impl Task {
    /// A task with defaults: `added`, without edges, never leased.
    pub fn bare(id: TaskId) -> Self {
        Self {
            id,
            kind: Kind::default(),
            priority: 0,
            key: None,
            ordered: false,
            unique: None,
            holds_name: false,
            weight: 1,
            tags: Vec::new(),
            deadline: None,
            not_before: Micros::ZERO,
            policy: PolicyOverride::default(),
            due: 0,
            added: Micros::ZERO,
            position: 0,
            has_edges: false,
            schedule: None,
            trace: None,
            state: State::Added,
            holds_key: false,
            unserved: false,
            token: Token::default(),
            failures: 0,
            retries: 0,
            returns: 0,
            generation: 0,
            worker: None,
            admitted: None,
            leased: None,
            prefetched: false,
            stop: None,
            progress: None,
            ended: None,
            ended_lease_clock: None,
            notified: false,
            retained: false,
            error: None,
            history: Vec::new(),
        }
    }

    /// Rank among tasks of its key: ordered tasks go by time of adding.
    pub fn key_order(&self) -> Rank {
        self.rank(if self.ordered { i64::try_from(self.added.get()).unwrap_or(i64::MAX) } else { self.due })
    }

    /// Since when a ready task could run: the latest of adding, `not_before`, admission and the end
    /// of the last run.
    pub fn ready_since(&self) -> Micros {
        let ended = self.history.last().map_or(Micros::ZERO, |last| last.ended);
        self.added.max(self.not_before).max(self.admitted.unwrap_or_default()).max(ended)
    }

    /// Rank among ready tasks.
    pub fn order(&self) -> Rank {
        self.rank(self.due)
    }

    /// Rank among scheduled tasks.
    pub fn start_order(&self) -> Rank {
        self.rank(i64::try_from(self.not_before.get()).unwrap_or(i64::MAX))
    }

    fn rank(&self, at: i64) -> Rank {
        Rank { at, added: self.added, position: self.position, id: self.id }
    }
}

/// A sort key of tasks: lower comes first. Equals in `at` follow the order of adding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rank {
    /// `due`, or an instant.
    pub at: i64,
    /// [`Task::added`].
    pub added: Micros,
    /// [`Task::position`].
    pub position: u32,
    /// The id: orders tasks of different producers.
    pub id: TaskId,
}

impl Rank {
    /// The lowest rank with this `at`.
    pub const fn first(at: i64) -> Self {
        Self { at, added: Micros::ZERO, position: 0, id: TaskId::FIRST }
    }

    /// The highest rank with this `at`.
    pub const fn last(at: i64) -> Self {
        Self { at, added: Micros::MAX, position: u32::MAX, id: TaskId::LAST }
    }
}
