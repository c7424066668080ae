//! Commands on a record.

use serde::{Deserialize, Serialize};

use crate::{
    InvalidInput, Label, MAX_ASK, MAX_TAKE, Memory, Micros, Rates, ShardId, Taken, Ticket, check_lease,
    check_weight,
    limits::{check_hold, check_lead},
};

/// One atomic command on the record of a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Command {
    /// One shard takes tickets, requests slots and reports what is left.
    Step(Step),
    /// A change for all shards, with the memory of the sending shard, if any.
    Change(Change, Memory),
    /// Reads the record.
    Read,
}

/// All reports and requests of one shard, in one round trip.
///
/// Reports are absolute (outstanding tickets, running jobs), so each step repairs the effect of a
/// lost one. A shard has at most one step under way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Step {
    /// The sender.
    pub shard: ShardId,
    /// The sender's label for people.
    pub label: Label,
    /// Rises with every step, even with a retry. The record rejects an older or equal number.
    pub sequence: u64,
    /// The sender's memory of the record.
    pub memory: Memory,
    /// The sender counts as alive for this long after the step.
    pub lease: Micros,
    /// How early a slot may be granted. Zero: once it has come.
    pub lead: Micros,
    /// Tickets to take for new jobs.
    pub take: Option<Take>,
    /// The lowest outstanding tickets, rising; granted as far as their slots are within the lead.
    pub ask: Vec<Ask>,
    /// The lowest outstanding ticket that is not in `ask`.
    pub then: Option<Ticket>,
    /// Handling of a ticket that missed its slot.
    pub late: Late,
    /// Number of jobs that run or have a grant.
    pub running: u32,
    /// The highest ticket dropped unused since the last acknowledged step.
    pub given_up: Option<Ticket>,
    /// A start so late that the next slot must move.
    pub late_start: Option<LateStart>,
}

/// A late start. Unless a younger ticket has a slot, the next slot comes an interval after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LateStart {
    /// Its ticket.
    pub ticket: Ticket,
    /// Its time on the store's clock.
    pub at: Micros,
}

/// A request for new tickets.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Take {
    /// Identifies the request: a retry with the same number gets the same tickets. Above zero.
    pub request: u64,
    /// Number of tickets.
    pub count: u32,
    /// Weights of the first of these jobs, which request slots at once. Empty if the step has a
    /// `then`.
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

/// Handling of a ticket that missed its slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Late {
    /// It takes the next free slot, normally before younger tickets. The default.
    #[default]
    NextSlot,
    /// A new ticket at the end of the queue replaces it, as well as later tickets whose grants were
    /// too light for the job that missed its slot.
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
    /// Stops all starts for this long. A longer hold stays.
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

/// Condition of a [`Change::Delete`]; otherwise it fails with
/// [`Conflict`](crate::StateErrorKind::Conflict).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Deletion {
    /// No living shard has jobs that wait or are known to run. The default. Shards that idle in a
    /// pause count as dead once their leases end.
    #[default]
    Unused,
    /// As [`Unused`](Self::Unused); besides, the queue is neither paused nor held, nothing used of
    /// its rates still counts, and its last write is at least this long ago.
    Idle(Micros),
    /// No condition. Shards that use the queue restore it.
    Forced,
}

/// Running limit of all shards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum MaxRunning {
    /// As stored; unlimited on a new queue. The default.
    #[default]
    Keep,
    /// No limit.
    Unlimited,
    /// At most this many jobs, at least 1.
    AtMost(u32),
}

/// Handling of an existing queue with other settings when it is opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OnExisting {
    /// Keeps the stored settings. The default.
    #[default]
    Keep,
    /// Replaces the stored settings, for all shards.
    Replace,
    /// Opening fails.
    Fail,
    /// Replaces the settings and [resets](Change::Reset) the queue.
    Reset,
}

impl Command {
    /// Checks every bound. [`rules::apply`](crate::rules::apply) calls it; a backend with its own
    /// rules must.
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
    /// A step that only renews the lease.
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

    /// The tickets that request slots, those just taken last.
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
    /// The limit that results from the stored one.
    pub fn over(self, stored: Option<u32>) -> Option<u32> {
        match self {
            MaxRunning::Keep => stored,
            MaxRunning::Unlimited => None,
            MaxRunning::AtMost(limit) => Some(limit),
        }
    }
}
