//! Replies of the store. Instants are on its clock; durations count from `memory.at`.

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
    /// To [`Command::Read`](crate::Command::Read). `None`: no such queue.
    Read(Option<Snapshot>),
}

impl Reply {
    /// The reply to a step.
    ///
    /// # Errors
    ///
    /// The reply is of another kind.
    pub fn stepped(self) -> Result<Stepped, StateError> {
        let Reply::Stepped(stepped) = self else { return Err(mismatch()) };
        Ok(stepped)
    }

    /// The reply to a change.
    ///
    /// # Errors
    ///
    /// The reply is of another kind.
    pub fn changed(self) -> Result<Changed, StateError> {
        let Reply::Changed(changed) = self else { return Err(mismatch()) };
        Ok(changed)
    }

    /// The reply to a read.
    ///
    /// # Errors
    ///
    /// The reply is of another kind.
    pub fn read(self) -> Result<Option<Snapshot>, StateError> {
        let Reply::Read(snapshot) = self else { return Err(mismatch()) };
        Ok(snapshot)
    }
}

fn mismatch() -> StateError {
    let text = "the store's backend replied to another command";
    StateError::new(StateErrorKind::Unsupported, text)
}

/// The result of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stepped {
    /// Memory for the next command.
    pub memory: Memory,
    /// Tickets taken.
    pub taken: Option<Taken>,
    /// Tickets that may start, rising: the first of those requested, including tickets just taken.
    pub grants: Vec<Grant>,
    /// Wait of the lowest remaining ticket. `None`: none remains.
    pub wait: Option<Wait>,
    /// Whether the record lists the shard, which then owes a step once it has nothing left to do.
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
    /// Its slot, on the store's clock; past, perhaps, if the grant is repeated.
    pub slot: Micros,
}

/// Why a ticket waits, and when to request again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// The reason.
    pub reason: WaitReason,
    /// When to request again. `None`: when woken.
    pub ask_in: Option<Micros>,
}

/// Why a ticket waits.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WaitReason {
    /// The slot has not come; no living shard has a lower ticket.
    Slot,
    /// The slot has not come; other shards have lower tickets.
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
    /// Memory for the next command. After a [deletion](crate::Change::Delete) only the instant.
    pub memory: Memory,
    /// Settings before. `None`: a new queue.
    pub before: Option<Settings>,
}

/// Settings shared by all shards of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Settings {
    /// The rates.
    pub rates: Rates,
    /// Running limit of all shards. `None`: unlimited.
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

/// A read of the record. Its `seen_at` is the last write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Snapshot {
    /// Time of the read on the store's clock.
    pub at: Micros,
    /// The record.
    pub record: Record,
}
