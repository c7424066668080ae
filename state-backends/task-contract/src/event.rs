//! Events: changes of tasks, recorded while a follower is subscribed.

use interval_queue_contract::{InvalidInput, Micros};
use serde::{Deserialize, Serialize};

use crate::{Kind, MAX_PAGE, State, Task, TaskId, WorkerId};

/// Minimum time for which events are recorded after a follower's request.
pub const FOLLOWED: Micros = Micros::from_millis(60_000);
/// Retention of events.
pub const KEEP_EVENTS: Micros = Micros::from_millis(120_000);

/// A change of a task's state, or of its log: `from` equals `to`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// When it happened, on the store's clock.
    pub at: Micros,
    /// The task.
    pub task: TaskId,
    /// The task's kind.
    pub kind: Kind,
    /// The state before. `None`: it was not stored.
    pub from: Option<State>,
    /// The state after. `None`: it was purged.
    pub to: Option<State>,
    /// How often the task was leased by then.
    pub attempt: u32,
    /// The worker whose run began or ended.
    pub worker: Option<WorkerId>,
    /// Why the run failed or the task was cancelled.
    pub error: Option<String>,
}

impl Event {
    /// Whether the task's log has new lines, and its state is unchanged.
    pub fn is_log(&self) -> bool {
        self.from == self.to
    }

    pub(crate) fn of_log(at: Micros, x: &Task) -> Self {
        Self {
            at,
            task: x.id,
            kind: x.kind.clone(),
            from: Some(x.state),
            to: Some(x.state),
            attempt: x.token.attempt,
            worker: None,
            error: None,
        }
    }

    /// `None`: the state is unchanged.
    pub(crate) fn of(at: Micros, before: Option<&Task>, after: &Task) -> Option<Self> {
        let there = |state: State| (state != State::Purged).then_some(state);
        let (from, to) = (before.and_then(|before| there(before.state)), there(after.state));
        if from == to {
            return None;
        }
        let has_said =
            before.is_none_or(|before| before.error != after.error || before.failures < after.failures);
        let runs = [from, to].contains(&Some(State::Leased));
        Some(Self {
            at,
            task: after.id,
            kind: after.kind.clone(),
            from,
            to,
            attempt: after.token.attempt,
            worker: after.worker.filter(|_| runs),
            error: after.error.clone().filter(|_| has_said),
        })
    }
}

/// How far a follower has read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// Number, in the store, of the last event that was returned.
    pub number: u64,
    /// Everything until this instant was returned.
    pub at: Micros,
}

/// A follower's request: returns events and keeps them recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Follow {
    /// Start after this mark. `None`: now.
    pub after: Option<Mark>,
    /// Maximum number of events, 1 to [`MAX_PAGE`].
    pub most: u32,
}

impl Follow {
    pub(crate) fn check(&self) -> Result<(), InvalidInput> {
        if (1..=MAX_PAGE).contains(&self.most) {
            return Ok(());
        }
        Err(InvalidInput::new(format!("{} events at once: ask for 1 to {MAX_PAGE}", self.most)))
    }
}

/// The reply to a follower.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Followed {
    /// Events in the order of storing; those of one task in the order of happening.
    pub events: Vec<Event>,
    /// `after` of the next request.
    pub mark: Mark,
    /// Whether events may be missing since the mark: the follower was away for too long, or the
    /// store was rolled back.
    pub missed: bool,
}

/// The period in which events are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Following {
    /// Begin of gapless recording, on the store's clock.
    pub from: Micros,
    /// End of recording, unless a follower asks again.
    pub until: Micros,
}

impl Following {
    /// Longer than `FOLLOWED`, so that not every request writes the queue's row.
    const MAX_PERIOD: Micros = Micros::new(FOLLOWED.get() * 3 / 2);

    pub(crate) fn renewed(from: Micros, now: Micros) -> Self {
        Self { from, until: now + Self::MAX_PERIOD }
    }

    /// False also if the clock was stepped back since.
    pub(crate) fn is_on(&self, now: Micros) -> bool {
        self.from <= now && now < self.until && self.until - now <= Self::MAX_PERIOD
    }
}
