//! What becomes of tasks while somebody follows, told as it happens.

use interval_queue_contract::{InvalidInput, Micros};
use serde::{Deserialize, Serialize};

use crate::{Kind, MAX_PAGE, State, Task, TaskId, WorkerId};

/// Events are noted for so long at least after somebody has asked for them.
pub const FOLLOWED: Micros = Micros::from_millis(60_000);
/// An event is kept for so long.
pub const KEEP_EVENTS: Micros = Micros::from_millis(120_000);

/// A task is in another state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// When, on the store's clock.
    pub at: Micros,
    /// The task.
    pub task: TaskId,
    /// Its kind.
    pub kind: Kind,
    /// In which state it was; none: it was not there.
    pub from: Option<State>,
    /// In which state it is; none: it is not there any more, as it was purged.
    pub to: Option<State>,
    /// How often it was leased by then.
    pub attempt: u32,
    /// Whose run began or ended.
    pub worker: Option<WorkerId>,
    /// What was said of it by this: why a run failed, or why it was cancelled.
    pub error: Option<String>,
}

impl Event {
    /// What there is to tell; none: it is in the state in which it was. The id of a purged task is kept, which counts
    /// as not there.
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

/// How far somebody has followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// The last event that was told, by the number that its store gave it.
    pub number: u64,
    /// All that happened until then was told.
    pub at: Micros,
}

/// Asks for events, and for more of them to be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Follow {
    /// Those after this mark; none: it begins now.
    pub after: Option<Mark>,
    /// At most so many, and at most [`MAX_PAGE`].
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

/// What has happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Followed {
    /// In the order in which it was stored; those of one task in the order in which they happened.
    pub events: Vec<Event>,
    /// Where to go on.
    pub mark: Mark,
    /// Whether events may be lacking between the mark that was given and these: nobody has asked for longer than events
    /// are noted, or kept; or the store was rolled back since.
    pub missed: bool,
}

/// Since when, and until when events are noted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Following {
    /// Without a gap since then, on the store's clock.
    pub from: Micros,
    /// Until then, unless somebody asks again.
    pub until: Micros,
}

impl Following {
    /// As long as can be; not each time that somebody asks the row of the queue is written.
    const LONGEST: Micros = Micros::new(FOLLOWED.get() * 3 / 2);

    /// From now on; or still, without a gap.
    pub(crate) fn renewed(from: Micros, now: Micros) -> Self {
        Self { from, until: now + Self::LONGEST }
    }

    /// Whether events are noted now. Not if the clock was stepped back since.
    pub(crate) fn is_on(&self, now: Micros) -> bool {
        self.from <= now && now < self.until && self.until - now <= Self::LONGEST
    }
}
