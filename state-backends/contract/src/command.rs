//! Commands on a record: one step of a shard, one change for all shards, or a read.

use crate::{
    InvalidInput, Label, MAX_ASK, MAX_TAKE, Memory, Micros, Rates, ShardId, Taken, Ticket, check_lease,
    check_weight,
    limits::{check_hold, check_lead},
};

/// One atomic command on the record of a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Command {
    /// One shard takes tickets, requests slots and reports its outstanding work.
    Step(Step),
    /// A change for all shards, with the memory of the shard that sends it, if any.
    Change(Change, Memory),
    /// Returns the record unchanged.
    Read,
}

/// Everything one shard reports and requests, in one round trip.
///
/// Reports are absolute (outstanding tickets, running jobs), so each step repairs the effect of a
/// lost one. A shard has at most one step under way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Step {
    /// The shard that sends the step.
    pub shard: ShardId,
    /// Its label for people.
    pub label: Label,
    /// Rises with every step, also with a retry. The record rejects a number that is not above its
    /// last.
    pub sequence: u64,
    /// The part of the record that the shard saw last.
    pub memory: Memory,
    /// The shard counts as alive for this long after the step.
    pub lease: Micros,
    /// How early a slot may be granted. Zero: only once it has come.
    pub lead: Micros,
    /// Tickets wanted for new jobs.
    pub take: Option<Take>,
    /// Its lowest outstanding tickets, rising. They are granted as far as their slots are within
    /// the lead.
    pub ask: Vec<Ask>,
    /// Its lowest outstanding ticket that is not in `ask`.
    pub then: Option<Ticket>,
    /// Handling of a ticket that missed its slot.
    pub late: Late,
    /// Number of its jobs that run or have a grant.
    pub running: u32,
    /// The highest ticket dropped unused since its last acknowledged step.
    pub given_up: Option<Ticket>,
    /// A start so late after its slot that the next slot must move.
    pub late_start: Option<LateStart>,
}

/// A job that started late. Unless a younger ticket has a slot already, the next slot comes one
/// interval after this start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LateStart {
    /// The ticket of the job.
    pub ticket: Ticket,
    /// Start of the job, on the store's clock.
    pub at: Micros,
}

/// A request for tickets of new jobs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Take {
    /// Identifies the request: a retry with the same number gets the same tickets. Above zero.
    pub request: u64,
    /// Number of tickets.
    pub count: u32,
    /// Weights of the first of these jobs, which request their slots at once. Empty if the step has
    /// a `then`.
    pub weights: Vec<u32>,
}

/// A request for the slot of an outstanding ticket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ask {
    /// The ticket.
    pub ticket: Ticket,
    /// Number of intervals that its job takes.
    pub weight: u32,
}

/// Handling of a ticket whose shard missed its slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Late {
    /// The ticket takes the next free slot, normally before younger tickets. The default.
    #[default]
    NextSlot,
    /// The ticket is replaced by a new one at the end of the queue. So are later tickets whose
    /// grants the shard returned because they were too light for the job that missed its slot.
    Requeue,
}

/// A change for all shards of the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// Creates the queue, or opens an existing one.
    Open {
        /// The rates. `None`: as stored.
        rates: Option<Rates>,
        /// The running limit.
        max_running: MaxRunning,
        /// Handling of an existing queue with other settings.
        on_existing: OnExisting,
    },
    /// Changes the settings of an existing queue.
    Set {
        /// The rates. `None`: unchanged.
        rates: Option<Rates>,
        /// The running limit.
        max_running: MaxRunning,
    },
    /// Stops all starts.
    Pause,
    /// Ends a pause.
    Resume,
    /// Stops all starts for this long. A longer hold in force stays.
    Hold(Micros),
    /// Removes pause, hold, far reservations and shards; keeps tickets and settings.
    Reset,
    /// Deletes the record. A queue opened under its name later is new.
    ///
    /// A shard that remembers the queue restores it with its next step, as after any
    /// [loss](crate::rules): with its tickets and settings, and the next slot one interval and the
    /// longest lead away. A new queue of the name knows no earlier reservation and may start at
    /// once.
    Delete(Deletion),
}

/// Condition of a [`Change::Delete`]; if it is not met, the error is
/// [`Conflict`](crate::StateErrorKind::Conflict).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Deletion {
    /// No living shard has waiting jobs or jobs known to run. The default. Shards that are idle in
    /// a pause count as dead once their leases have ended.
    #[default]
    Unused,
    /// As [`Unused`](Self::Unused); besides, the queue is neither paused nor held, nothing used of
    /// its rates still counts, and its last write was at least this long ago.
    Idle(Micros),
    /// No condition. Shards that use the queue restore it.
    Forced,
}

/// How many jobs of all shards may run at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MaxRunning {
    /// As stored; unlimited on a new queue. The default.
    #[default]
    Keep,
    /// No limit.
    Unlimited,
    /// At most this many, at least 1.
    AtMost(u32),
}

/// Handling of an existing queue with other settings when it is opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OnExisting {
    /// The stored settings stay. The default.
    #[default]
    Keep,
    /// The caller's settings replace the stored ones for all shards.
    Replace,
    /// Opening fails.
    Fail,
    /// As [`Replace`](Self::Replace), and the queue is [reset](Change::Reset).
    Reset,
}

impl Command {
    /// Checks every bound. [`rules::apply`](crate::rules::apply) calls it; a backend with its own
    /// rules must, too.
    ///
    /// # Errors
    ///
    /// Names the value and the permitted range.
    pub fn check(&self) -> Result<(), InvalidInput> {
        match self {
            Command::Step(step) => step.check(),
            Command::Change(change, memory) => memory.check().and_then(|()| change.check()),
            Command::Read => Ok(()),
        }
    }
}

impl Step {
    /// A step that only renews the lease: the shard takes, requests and has nothing.
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

    /// The tickets that request their slots; the tickets just taken come last.
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
    /// The limit after this setting is applied to the stored one.
    pub fn over(self, stored: Option<u32>) -> Option<u32> {
        match self {
            MaxRunning::Keep => stored,
            MaxRunning::Unlimited => None,
            MaxRunning::AtMost(limit) => Some(limit),
        }
    }
}
