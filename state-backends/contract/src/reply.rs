//! Replies of the store. Instants are on its clock; durations count from `memory.at`, the time of
//! the reply.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Memory, Micros, Rates, Record, ShardId, StateError, StateErrorKind, Ticket};

/// The reply to a command.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reply {
    /// To [`Command::Step`](crate::Command::Step).
    Stepped(Stepped),
    /// To [`Command::Change`](crate::Command::Change).
    Changed(Changed),
    /// To [`Command::Read`](crate::Command::Read). `None`: the queue does not exist.
    Read(Option<Snapshot>),
}

impl Reply {
    /// The reply to a step.
    ///
    /// # Errors
    ///
    /// The backend replied to another kind of command.
    pub fn stepped(self) -> Result<Stepped, StateError> {
        let Reply::Stepped(stepped) = self else { return Err(mismatch()) };
        Ok(stepped)
    }

    /// The reply to a change.
    ///
    /// # Errors
    ///
    /// The backend replied to another kind of command.
    pub fn changed(self) -> Result<Changed, StateError> {
        let Reply::Changed(changed) = self else { return Err(mismatch()) };
        Ok(changed)
    }

    /// The reply to a read.
    ///
    /// # Errors
    ///
    /// The backend replied to another kind of command.
    pub fn read(self) -> Result<Option<Snapshot>, StateError> {
        let Reply::Read(snapshot) = self else { return Err(mismatch()) };
        Ok(snapshot)
    }
}

fn mismatch() -> StateError {
    let text = "the state backend answered another command than was given";
    StateError::new(StateErrorKind::Unsupported, text)
}

/// The result of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stepped {
    /// Memory to send with the next command.
    pub memory: Memory,
    /// The tickets taken.
    pub taken: Option<Taken>,
    /// Tickets that may start, rising: the first ones of those requested, including tickets just
    /// taken.
    pub grants: Vec<Grant>,
    /// Reason and duration of the wait of the lowest remaining ticket. `None`: no ticket remains.
    pub wait: Option<Wait>,
    /// Whether the record lists the shard. Then the shard owes another step once it has nothing
    /// left to do.
    pub present: bool,
}

/// Tickets `first`, `first + 1`, … for new jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Taken {
    /// The lowest ticket.
    pub first: Ticket,
    /// Number of tickets.
    pub count: u32,
}

impl Taken {
    /// All tickets, rising.
    pub fn tickets(self) -> impl Iterator<Item = Ticket> {
        (0..u64::from(self.count)).map(move |n| self.first.after(n))
    }
}

/// Permission to start a ticket at its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grant {
    /// The ticket.
    pub ticket: Ticket,
    /// Its slot, on the store's clock. It may have passed if the grant is a repeated one.
    pub slot: Micros,
}

/// A wait: its reason, and when to request again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// The reason.
    pub reason: WaitReason,
    /// When to request again. `None`: only when something wakes the shard.
    pub ask_in: Option<Micros>,
}

/// Reason why a ticket waits.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WaitReason {
    /// Its own slot; no living shard has a lower ticket.
    Slot,
    /// Its own slot; other shards have lower tickets.
    Behind {
        /// The shard with the lowest ticket.
        shard: ShardId,
        /// The lowest ticket.
        ticket: Ticket,
    },
    /// The ticket missed its slot, and the step set [`Late::Requeue`](crate::Late::Requeue).
    Missed,
    /// The queue is paused.
    Paused,
    /// The running limit is reached.
    AtMaxRunning,
}

/// The result of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Changed {
    /// Memory to send with the next command. After a [deletion](crate::Change::Delete) it holds
    /// only the instant.
    pub memory: Memory,
    /// The settings before the change. `None`: the queue is new.
    pub before: Option<Settings>,
}

/// The settings that all shards of a queue share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Settings {
    /// The rates.
    pub rates: Rates,
    /// How many jobs of all shards may run at once. `None`: unlimited.
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

/// The record as read. Its `seen_at` is the time of the last write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Snapshot {
    /// Time of the read, on the store's clock.
    pub at: Micros,
    /// The record.
    pub record: Record,
}
