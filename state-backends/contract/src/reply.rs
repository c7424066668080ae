//! What the state answers. Instants are on its clock; durations count from `memory.at`, when it answered.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Memory, Micros, Rates, Record, ShardId, StateError, StateErrorKind, Ticket};

/// The answer to a command.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reply {
    /// To [`Command::Step`](crate::Command::Step).
    Stepped(Stepped),
    /// To [`Command::Change`](crate::Command::Change).
    Changed(Changed),
    /// To [`Command::Read`](crate::Command::Read); none: there is no such queue.
    Read(Option<Snapshot>),
}

impl Reply {
    /// The answer to a step.
    ///
    /// # Errors
    ///
    /// The backend answered another command.
    pub fn stepped(self) -> Result<Stepped, StateError> {
        let Reply::Stepped(stepped) = self else { return Err(mismatch()) };
        Ok(stepped)
    }

    /// The answer to a change.
    ///
    /// # Errors
    ///
    /// The backend answered another command.
    pub fn changed(self) -> Result<Changed, StateError> {
        let Reply::Changed(changed) = self else { return Err(mismatch()) };
        Ok(changed)
    }

    /// The answer to a look.
    ///
    /// # Errors
    ///
    /// The backend answered another command.
    pub fn read(self) -> Result<Option<Snapshot>, StateError> {
        let Reply::Read(snapshot) = self else { return Err(mismatch()) };
        Ok(snapshot)
    }
}

fn mismatch() -> StateError {
    let text = "the state backend answered another command than was given";
    StateError::new(StateErrorKind::Unsupported, text)
}

/// What a step brought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stepped {
    /// To be echoed with the next command.
    pub memory: Memory,
    /// The tickets taken.
    pub taken: Option<Taken>,
    /// The tickets that may start, rising: a leading part of those asked for, those just taken included.
    pub grants: Vec<Grant>,
    /// What the lowest ticket that is left waits for; none if none is left.
    pub wait: Option<Wait>,
    /// Whether the record knows the shard, so that it owes another step when it has nothing left to do.
    pub present: bool,
}

/// Tickets `first`, `first + 1`, … for new jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Taken {
    /// The first of them.
    pub first: Ticket,
    /// How many.
    pub count: u32,
}

impl Taken {
    /// All of them, rising.
    pub fn tickets(self) -> impl Iterator<Item = Ticket> {
        (0..u64::from(self.count)).map(move |n| self.first.after(n))
    }
}

/// Start this ticket at its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grant {
    /// The ticket.
    pub ticket: Ticket,
    /// Its slot, on the state's clock. Of a grant that is repeated it may have passed.
    pub slot: Micros,
}

/// Not now, and when to ask again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// What is waited for.
    pub reason: WaitReason,
    /// When to ask again; none: only when something wakes the shard.
    pub ask_in: Option<Micros>,
}

/// What a ticket waits for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WaitReason {
    /// Its own slot; nobody alive is before it.
    Slot,
    /// Its own slot, with tickets of other shards before it.
    Behind {
        /// The shard with the lowest ticket.
        shard: ShardId,
        /// That ticket.
        ticket: Ticket,
    },
    /// It missed its slot, and the step asked for [`Late::Requeue`](crate::Late::Requeue).
    Missed,
    /// The queue is paused.
    Paused,
    /// As many jobs run as may.
    AtMaxRunning,
}

/// What a change brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Changed {
    /// To be echoed with the next command. Of a queue that was [deleted](crate::Change::Delete) nothing but
    /// the instant.
    pub memory: Memory,
    /// The settings before; none if the queue is new.
    pub before: Option<Settings>,
}

/// The settings that all shards of a queue share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Settings {
    /// How fast it may be.
    pub rates: Rates,
    /// How many jobs of all shards may run at once; none: any number.
    pub max_running: Option<u32>,
}

impl fmt::Display for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rates, max_running } = self;
        match max_running {
            Some(limit) => write!(f, "one start {rates}, at most {limit} running"),
            None => write!(f, "one start {rates}, any number running"),
        }
    }
}

/// The record as it is. Its `seen_at` tells when it was last written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Snapshot {
    /// When, on the state's clock.
    pub at: Micros,
    /// The record.
    pub record: Record,
}
