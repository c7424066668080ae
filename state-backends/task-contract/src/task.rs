//! The row of a task: what it is, where it stands, and what became of it.

use std::fmt;

use interval_queue_contract::Micros;
use serde::{Deserialize, Serialize};

use crate::{Key, Kind, PolicyOverride, Tag, TaskId, Token, WorkerId};

/// One unit of stored work, without its payload and its result, which no rule looks into.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// Its id.
    pub id: TaskId,
    /// What handles it.
    pub kind: Kind,
    /// The higher, the more urgent.
    pub priority: i32,
    /// At most so many of one key run at a time as the queue says.
    pub key: Option<Key>,
    /// Whether tasks of its key run strictly one after the other, in the order of adding.
    pub ordered: bool,
    /// Its unique name, and how long it has it.
    pub unique: Option<Unique>,
    /// Whether it has that name now.
    pub holds_name: bool,
    /// How many slots of the pace its start takes, and how much of the capacity of its worker its run.
    pub weight: u32,
    /// Words to find it by.
    pub tags: Vec<Tag>,
    /// Started by then, or it has failed; running then, it is stopped. On the store's clock.
    pub deadline: Option<Micros>,
    /// Not before this instant of the store's clock; zero: at once.
    pub not_before: Micros,
    /// The parts of the policy that it sets itself; the rest is the queue's.
    pub policy: PolicyOverride,
    /// Where it stands among those that are ready: lower is more urgent.
    pub due: i64,
    /// When it was added, on the store's clock.
    pub added: Micros,
    /// Its number among the tasks that its producer has added: it orders those that were added at the same instant.
    pub position: u32,
    /// Whether it waits for upstreams, or did.
    pub has_edges: bool,
    /// The schedule that made it, and the instant that it stands for.
    pub schedule: Option<Nominal>,

    /// Where it is.
    pub state: State,
    /// Whether it holds a place of its key: it is ready, leased, or an ordered one that waits for its retry.
    pub holds_key: bool,
    /// Whether it is `blocked` and not in the line, since nobody serves its kind or the kind is paused.
    pub unserved: bool,
    /// The token of the last lease.
    pub token: Token,
    /// Runs that count against `max_attempts`.
    pub failures: u32,
    /// Runs that asked to be run again, which count against `max_retries`.
    pub retries: u32,
    /// Uncounted returns in a row.
    pub returns: u32,
    /// Rises when it is retried after its end.
    pub generation: u32,
    /// The worker that has it, or had it last.
    pub worker: Option<WorkerId>,
    /// When it became ready after it had waited for upstreams or for a place of its key, on the store's clock.
    pub admitted: Option<Micros>,
    /// When it was leased the last time, on the store's clock.
    pub leased: Option<Micros>,
    /// What its worker is asked to do with it.
    pub stop: Option<Stop>,
    /// How far the run says that it is.
    pub progress: Option<Progress>,
    /// When it ended, on the store's clock.
    pub ended: Option<Micros>,
    /// When it ended, on the clock of leases.
    pub ended_lease_clock: Option<Micros>,
    /// Whether its end was told to all who wait for it. Only of an ended one.
    pub notified: bool,
    /// Whether it is kept past its time for those downstream.
    pub retained: bool,
    /// Why the last run failed, or why it cannot go on.
    pub error: Option<String>,
    /// Earlier runs, the oldest first: at most [`MAX_HISTORY`](crate::MAX_HISTORY), the last ones.
    pub history: Vec<Attempt>,
}

/// Where a task is: the gate that it waits at, or how it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// It was added, and the next step of a worker lets it through its gates.
    Added,
    /// It waits for upstreams.
    Waiting,
    /// It waits for its time.
    Scheduled,
    /// It waits for a place of its key.
    Blocked,
    /// It can be leased.
    Ready,
    /// A worker has it.
    Leased,
    /// It ended well.
    Done,
    /// It failed for good.
    Failed,
    /// It was cancelled.
    Cancelled,
    /// It was purged by hand, or put in the place of another task, whose unique name it has. Only its id is kept for a
    /// while, so that a repeated `add` does not run it again.
    Purged,
}

impl State {
    /// All, in the order of a task's life.
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

    /// Whether it will not run any more, unless it is retried.
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

/// A name that at most one live task of the queue has.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Unique {
    /// The name.
    pub name: Key,
    /// How long the task has it.
    pub until: Until,
}

/// How long a task has its unique name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Until {
    /// Until it has ended. The default.
    #[default]
    Ended,
    /// Until it is leased, so that what comes during its run makes exactly one more run.
    Leased,
}

/// What a worker is asked to do with a task that it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stop {
    /// End it: it is cancelled.
    Cancel,
    /// End it: its deadline has passed.
    Deadline,
    /// Give it back, for another worker.
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

/// How far a run says that it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// So much of `total`.
    pub done: u64,
    /// Of how much; zero: not known.
    pub total: u64,
    /// What it is at.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
}

/// One run of a task, as it is remembered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// Its token.
    pub token: Token,
    /// The worker that ran it.
    pub worker: Option<WorkerId>,
    /// When it was leased.
    pub leased: Option<Micros>,
    /// When the store heard of its end.
    pub ended: Micros,
    /// How it ended.
    pub end: AttemptEnd,
    /// Why, if it did not end well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AttemptEnd {
    /// Well.
    Done,
    /// With an error.
    Error,
    /// It asked to be run again.
    Retry,
    /// It was given back.
    Released,
    /// It was stopped, as it was asked to.
    Stopped,
    /// Its worker was not heard of for a lease.
    Died,
    /// Its lease never reached the worker.
    Lost,
}

/// The instant of a schedule that a task stands for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Nominal {
    /// The schedule.
    pub schedule: Key,
    /// The instant.
    pub at: Micros,
}

impl Task {
    /// A task of which nothing is set that need not be: `added`, without edges, and leased by nobody.
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

    /// Its rank in the line of its key: an ordered task by the time of adding.
    pub fn line(&self) -> Rank {
        self.rank(if self.ordered { i64::try_from(self.added.get()).unwrap_or(i64::MAX) } else { self.due })
    }

    /// Since when a task that is ready could run, on the store's clock: the last of when it was added, its time, when
    /// its upstreams or its key let it in, and when its last run ended.
    pub fn ready_since(&self) -> Micros {
        let ended = self.history.last().map_or(Micros::ZERO, |last| last.ended);
        self.added.max(self.not_before).max(self.admitted.unwrap_or_default()).max(ended)
    }

    /// Its rank among those that are ready.
    pub fn order(&self) -> Rank {
        self.rank(self.due)
    }

    /// Its rank among those that wait for their time.
    pub fn start_order(&self) -> Rank {
        self.rank(i64::try_from(self.not_before.get()).unwrap_or(i64::MAX))
    }

    fn rank(&self, at: i64) -> Rank {
        Rank { at, added: self.added, position: self.position, id: self.id }
    }
}

/// The sort key of a task: lower comes first. Equals in `at` follow the order of adding, whatever their ids are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rank {
    /// What is sorted by: `due`, or an instant.
    pub at: i64,
    /// [`Task::added`].
    pub added: Micros,
    /// [`Task::position`].
    pub position: u32,
    /// The id: two producers may have added at the same instant.
    pub id: TaskId,
}

impl Rank {
    /// The lowest of all with this `at`.
    pub const fn first(at: i64) -> Self {
        Self { at, added: Micros::ZERO, position: 0, id: TaskId::FIRST }
    }

    /// The highest of all with this `at`.
    pub const fn last(at: i64) -> Self {
        Self { at, added: Micros::MAX, position: u32::MAX, id: TaskId::LAST }
    }
}
