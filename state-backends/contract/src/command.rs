//! What may be asked of the state: one step of a shard, one change for everybody, or a look.

use crate::{
    InvalidInput, Label, MAX_ASK, MAX_TAKE, Memory, Micros, Rates, ShardId, Taken, Ticket, check_lease,
    check_weight,
    limits::{check_hold, check_lead},
};

/// One atomic command on the record of a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Command {
    /// A shard takes tickets, asks for slots and says what it has left to do.
    Step(Step),
    /// Something that concerns all shards. The memory is that of the shard that says it, if one does.
    Change(Change, Memory),
    /// Look at the record without touching it.
    Read,
}

/// All that a shard tells the state and asks of it, in one round trip.
///
/// What it tells is absolute (its outstanding tickets, its running jobs), so that each step heals what a
/// lost one left wrong. A shard has one step under way at a time.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Step {
    /// The shard that steps.
    pub shard: ShardId,
    /// What a person calls it.
    pub label: Label,
    /// Rises with every step, also with one that is tried again. An older one is refused.
    pub sequence: u64,
    /// What the shard saw last.
    pub memory: Memory,
    /// How long after this step the shard counts as alive.
    pub lease: Micros,
    /// How early a slot may be granted. Zero: only when its time has come.
    pub lead: Micros,
    /// Tickets wanted for new jobs.
    pub take: Option<Take>,
    /// Its lowest outstanding tickets, rising, to be granted as far as their slots are within the lead.
    pub ask: Vec<Ask>,
    /// Its lowest outstanding ticket that is not in `ask`.
    pub then: Option<Ticket>,
    /// What is to happen to a ticket that missed its slot.
    pub late: Late,
    /// How many of its jobs run or have a grant.
    pub running: u32,
    /// The highest ticket it dropped unused since its last acknowledged step.
    pub given_up: Option<Ticket>,
    /// A start that came so late after its slot that the next slot is to be moved.
    pub late_start: Option<LateStart>,
}

/// A job that started late. If no younger ticket has a slot yet, the next one comes an interval after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LateStart {
    /// The ticket.
    pub ticket: Ticket,
    /// When it started, on the state's clock.
    pub at: Micros,
}

/// New tickets for jobs that were added.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Take {
    /// Names the request: a retry under the same number gets the same tickets. Above zero.
    pub request: u64,
    /// How many tickets.
    pub count: u32,
    /// Weights of the first of these jobs, which ask for their slots at once. Empty if the step has a `then`.
    pub weights: Vec<u32>,
}

/// An outstanding ticket that asks for its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ask {
    /// The ticket.
    pub ticket: Ticket,
    /// How many intervals its job takes.
    pub weight: u32,
}

/// What becomes of a ticket whose shard missed its slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Late {
    /// It takes the next free slot, as a rule before younger tickets. The default.
    #[default]
    NextSlot,
    /// It is given up for a fresh ticket at the back of the queue. So are the tickets behind it whose grants
    /// the shard gave back, because they were too light for the job that missed its slot.
    Requeue,
}

/// A change for all shards of the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// Create the queue, or meet the one that is there.
    Open {
        /// The rates; none: whatever is stored.
        rates: Option<Rates>,
        /// The running limit.
        max_running: MaxRunning,
        /// What to do if the queue is there with other settings.
        on_existing: OnExisting,
    },
    /// Change the settings of a queue that is there.
    Set {
        /// The rates; none: as they are.
        rates: Option<Rates>,
        /// The running limit.
        max_running: MaxRunning,
    },
    /// Start nothing any more.
    Pause,
    /// Start again.
    Resume,
    /// Start nothing for this long. A longer hold that is in force stays.
    Hold(Micros),
    /// Forget pause, hold, far reservations and the shards; keep tickets and settings.
    Reset,
    /// Forget the queue: nothing of it is stored any more, and a queue that is opened under its name is new.
    ///
    /// A shard that remembers it brings it back with its next step, as after any
    /// [loss](crate::rules): with its tickets and settings, and the next slot an interval and the longest
    /// lead away. What was reserved is known to nobody else: a new queue of the name may start at once.
    Delete(Deletion),
}

/// Which queues a [`Change::Delete`] forgets. All others it refuses with
/// [`Conflict`](crate::StateErrorKind::Conflict).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Deletion {
    /// One that no living shard has jobs in, waiting or known to run. The default. Shards that are idle in a
    /// pause are not known to live once their leases have ended.
    #[default]
    Unused,
    /// The same, if it is neither paused nor held, its next slot is not ahead, and it was last written to at
    /// least so long ago.
    Idle(Micros),
    /// Any. Shards that use it bring it back.
    Forced,
}

/// How many jobs of all shards may run at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MaxRunning {
    /// Whatever is stored; on a new queue any number. The default.
    #[default]
    Keep,
    /// Any number.
    Unlimited,
    /// At most so many, at least one.
    AtMost(u32),
}

/// What opening a queue does if it is there with other settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OnExisting {
    /// The stored settings hold. The default.
    #[default]
    Keep,
    /// The caller's settings are the new truth for all shards.
    Replace,
    /// It is an error.
    Fail,
    /// The caller's settings are the new truth, and the queue is [reset](Change::Reset).
    Reset,
}

impl Command {
    /// Checks every bound. [`rules::apply`](crate::rules::apply) does it; a backend with rules of its own
    /// calls it.
    ///
    /// # Errors
    ///
    /// Names the value and what would be right.
    pub fn check(&self) -> Result<(), InvalidInput> {
        match self {
            Command::Step(step) => step.check(),
            Command::Change(change, memory) => memory.check().and_then(|()| change.check()),
            Command::Read => Ok(()),
        }
    }
}

impl Step {
    /// A step that only says that the shard lives: it takes, asks for and has nothing.
    pub fn idle(shard: ShardId, sequence: u64, memory: Memory, lease: Micros) -> Self {
        Self {
            shard,
            label: Label::default(),
            sequence,
            memory,
            lease,
            lead: Micros::ZERO,
            take: None,
            ask: Vec::new(),
            then: None,
            late: Late::NextSlot,
            running: 0,
            given_up: None,
            late_start: None,
        }
    }

    /// The tickets that ask for their slots, those just taken last.
    pub fn asked(&self, taken: Option<Taken>) -> impl Iterator<Item = Ask> {
        let weights = self.take.iter().flat_map(|take| &take.weights);
        let new = taken.into_iter().flat_map(Taken::tickets);
        self.ask.iter().copied().chain(new.zip(weights).map(|(ticket, &weight)| Ask { ticket, weight }))
    }

    fn check(&self) -> Result<(), InvalidInput> {
        self.memory.check()?;
        check_lease(self.lease)?;
        check_lead(self.lead)?;
        let asked = self.ask.len() + self.take.as_ref().map_or(0, |take| take.weights.len());
        if asked > MAX_ASK {
            return Err(InvalidInput::new(format!("{asked} tickets asked for at once: at most {MAX_ASK}")));
        }
        let rising = self.ask.windows(2).all(|pair| pair[0].ticket < pair[1].ticket);
        if !rising || self.then.zip(self.ask.last()).is_some_and(|(then, last)| then <= last.ticket) {
            return Err(InvalidInput::new("the tickets of a step must rise"));
        }
        self.ask.iter().try_for_each(|ask| check_weight(ask.weight))?;
        if let Some(take) = &self.take {
            take.weights.iter().try_for_each(|&weight| check_weight(weight))?;
            if take.request == 0 || take.count == 0 || take.count > MAX_TAKE {
                return Err(InvalidInput::new(format!(
                    "take {} of {} tickets: number requests from 1 and take 1 to {MAX_TAKE}",
                    take.request, take.count
                )));
            }
            if take.weights.len() > take.count as usize || (self.then.is_some() && !take.weights.is_empty()) {
                return Err(InvalidInput::new("a ticket is asked for before those in front of it"));
            }
        }
        Ok(())
    }
}

impl Change {
    fn check(&self) -> Result<(), InvalidInput> {
        match *self {
            Change::Open { rates, max_running, .. } | Change::Set { rates, max_running } => {
                rates.map_or(Ok(()), |rates| rates.check())?;
                match max_running {
                    MaxRunning::AtMost(0) => {
                        Err(InvalidInput::new("max_running 0: at least 1, or pause the queue"))
                    }
                    _ => Ok(()),
                }
            }
            Change::Hold(duration) => check_hold(duration),
            Change::Pause | Change::Resume | Change::Reset | Change::Delete(_) => Ok(()),
        }
    }
}

impl MaxRunning {
    /// The limit that this makes of the stored one.
    pub fn over(self, stored: Option<u32>) -> Option<u32> {
        match self {
            MaxRunning::Keep => stored,
            MaxRunning::Unlimited => None,
            MaxRunning::AtMost(limit) => Some(limit),
        }
    }
}
