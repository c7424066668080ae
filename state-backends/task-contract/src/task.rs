//! The row of a task: its options, its state and its history.

use std::fmt;

use interval_queue_contract::Micros;
use serde::{Deserialize, Serialize};

use crate::{Key, Kind, PolicyOverride, Tag, TaskId, Token, WorkerId};

/// A task without its payload and its result, which no rule reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// Its id.
    pub id: TaskId,
    /// Names its handler.
    pub kind: Kind,
    /// Higher is more urgent.
    pub priority: i32,
    /// At most `key_limit` tasks of one key run at once.
    pub key: Option<Key>,
    /// Whether tasks of its key run strictly one after the other, in the order of adding.
    pub ordered: bool,
    /// Its unique name, and for how long.
    pub unique: Option<Unique>,
    /// Whether it holds that name now.
    pub holds_name: bool,
    /// Slots of the rate limit that its start takes, and capacity of its worker that its run takes.
    pub weight: u32,
    /// Words to find it by.
    pub tags: Vec<Tag>,
    /// At this instant of the store's clock it fails if it has not started; its run is asked to
    /// stop.
    pub deadline: Option<Micros>,
    /// Earliest start, on the store's clock. Zero: at once.
    pub not_before: Micros,
    /// The parts of the policy that it sets; the queue's policy supplies the rest.
    pub policy: PolicyOverride,
    /// Sort key among ready tasks: lower is more urgent.
    pub due: i64,
    /// When it was added, on the store's clock.
    pub added: Micros,
    /// Its number among the tasks of its producer: orders tasks added at the same instant.
    pub position: u32,
    /// Whether it has, or had, upstreams.
    pub has_edges: bool,
    /// The schedule that made it, with the nominal instant.
    pub schedule: Option<Nominal>,

    /// The gate that it waits at, or how it ended.
    pub state: State,
    /// Whether it holds a permit of its key. True of ready and leased tasks, of an ordered one that
    /// waits for its retry, and of one completed within a transaction until downstreams are
    /// notified.
    pub holds_key: bool,
    /// Whether it is `blocked` without competing for its key, because no worker handles its kind or
    /// the kind is paused.
    pub unserved: bool,
    /// The token of the last lease.
    pub token: Token,
    /// Runs that count against `max_attempts`.
    pub failures: u32,
    /// Runs that asked to run again; they count against `max_retries`.
    pub retries: u32,
    /// Uncounted returns in a row.
    pub returns: u32,
    /// Rises with each retry after its end.
    pub generation: u32,
    /// The worker that holds it, or held it last.
    pub worker: Option<WorkerId>,
    /// When it last became ready after waiting for upstreams or for its key, on the store's clock.
    pub admitted: Option<Micros>,
    /// When it was last leased, on the store's clock.
    pub leased: Option<Micros>,
    /// A pending request to its worker to stop the run.
    pub stop: Option<Stop>,
    /// The progress that its run reported.
    pub progress: Option<Progress>,
    /// When it ended, on the store's clock.
    pub ended: Option<Micros>,
    /// When it ended, on the lease clock.
    pub ended_lease_clock: Option<Micros>,
    /// Whether all downstreams were notified of its end.
    pub notified: bool,
    /// Whether it is kept past its retention for dependents.
    pub retained: bool,
    /// Why the last run failed, or why it cannot go on.
    pub error: Option<String>,
    /// Earlier runs, oldest first: the last [`MAX_HISTORY`](crate::MAX_HISTORY).
    pub history: Vec<Attempt>,
}

/// The gate at which a task waits, or how it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// It was added, and no poll of a worker has admitted it yet.
    Added,
    /// It waits for upstreams.
    Waiting,
    /// It waits for its time.
    Scheduled,
    /// It waits for a permit of its key.
    Blocked,
    /// It can be leased.
    Ready,
    /// A worker holds it.
    Leased,
    /// It succeeded.
    Done,
    /// It failed for good.
    Failed,
    /// It was cancelled.
    Cancelled,
    /// It was purged by hand, or has replaced the task that held its unique name. Its id is kept
    /// for a while, so that a repeated `add` does not run it again.
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

    /// Whether a task in this state will not run unless it is retried.
    pub fn is_ended(self) -> bool {
        matches!(self, Self::Done | Self::Failed | Self::Cancelled | Self::Purged)
    }

    /// Its name in stores, documents and selectors.
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

/// A name that at most one live task of the queue holds.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Unique {
    /// The name.
    pub name: Key,
    /// When the task releases it.
    pub until: Until,
}

/// When a task releases its unique name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Until {
    /// When it ends. The default.
    #[default]
    Ended,
    /// When it is leased: tasks added during its run lead to exactly one more run.
    Leased,
}

/// A request to a worker to stop a run.
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
    /// Its name in stores.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cancel => "cancel",
            Self::Deadline => "deadline",
            Self::Release => "release",
        }
    }
}

/// Progress as a run reports it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// Amount done, of `total`.
    pub done: u64,
    /// Total amount. Zero: unknown.
    pub total: u64,
    /// The current activity.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
}

/// A past run in the history of its task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// Its token.
    pub token: Token,
    /// The worker that ran it.
    pub worker: Option<WorkerId>,
    /// When it was leased.
    pub leased: Option<Micros>,
    /// When the store received its end.
    pub ended: Micros,
    /// How it ended.
    pub end: AttemptEnd,
    /// Why, if it did not succeed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AttemptEnd {
    /// It succeeded.
    Done,
    /// It failed.
    Error,
    /// It asked to run again.
    Retry,
    /// It was given back.
    Released,
    /// It stopped on request.
    Stopped,
    /// Its worker did not renew the lease.
    Died,
    /// Its lease never reached the worker.
    Lost,
}

/// The nominal instant that a task was made for.
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

    /// Its rank among tasks of its key: an ordered task goes by the time of adding.
    pub fn line(&self) -> Rank {
        self.rank(if self.ordered { i64::try_from(self.added.get()).unwrap_or(i64::MAX) } else { self.due })
    }

    /// Since when a ready task could run, on the store's clock: the latest of its adding, its time,
    /// its admission and the end of its last run.
    pub fn ready_since(&self) -> Micros {
        let ended = self.history.last().map_or(Micros::ZERO, |last| last.ended);
        self.added.max(self.not_before).max(self.admitted.unwrap_or_default()).max(ended)
    }

    /// Its rank among ready tasks.
    pub fn order(&self) -> Rank {
        self.rank(self.due)
    }

    /// Its rank among scheduled tasks.
    pub fn start_order(&self) -> Rank {
        self.rank(i64::try_from(self.not_before.get()).unwrap_or(i64::MAX))
    }

    fn rank(&self, at: i64) -> Rank {
        Rank { at, added: self.added, position: self.position, id: self.id }
    }
}

/// The sort key of a task: lower comes first. Ties in `at` follow the order of adding, not the ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rank {
    /// The primary key: `due`, or an instant.
    pub at: i64,
    /// [`Task::added`].
    pub added: Micros,
    /// [`Task::position`].
    pub position: u32,
    /// Breaks ties between producers that added at the same instant.
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
