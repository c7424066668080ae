//! Status of a queue, read from its record.

use std::fmt;

use serde::Serialize;

use crate::{Label, Micros, ShardId, Snapshot, Ticket};

/// Why nothing starts in a queue, or what starts next.
///
/// In JSON `kind` is the variant, and times are microseconds:
/// `{"kind": "held", "ends_in_us": 1000}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum StartStatus {
    /// The queue is paused.
    Paused,
    /// A hold is in force.
    Held {
        /// Time until the hold ends.
        #[serde(rename = "ends_in_us")]
        ends_in: Micros,
    },
    /// No living shard has a waiting job.
    Empty,
    /// The running limit is reached.
    AtMaxRunning {
        /// Number of running jobs.
        running: u64,
        /// The limit.
        limit: u32,
    },
    /// The lowest ticket starts next.
    Next {
        /// The lowest ticket.
        ticket: Ticket,
        /// The shard that holds it.
        shard: ShardId,
        /// The shard's label for people.
        label: Label,
        /// Time until the shard counts as dead unless it renews.
        #[serde(rename = "lease_ends_in_us")]
        lease_ends_in: Micros,
        /// Time until the next slot.
        #[serde(rename = "slot_in_us")]
        slot_in: Micros,
    },
}

impl fmt::Display for StartStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = |micros: &Micros| micros.to_duration().as_secs_f64();
        match self {
            StartStatus::Paused => f.write_str("paused"),
            StartStatus::Held { ends_in } => write!(f, "held for another {:.1} s", seconds(ends_in)),
            StartStatus::Empty => f.write_str("empty: no job waits"),
            StartStatus::AtMaxRunning { running, limit } => write!(f, "{running} jobs run and {limit} may"),
            StartStatus::Next { ticket, shard, label, lease_ends_in, slot_in } => write!(
                f,
                "waiting for ticket {ticket} of shard {shard} ({label}), whose lease ends in {:.1} s; \
                 next slot in {:.3} s",
                seconds(lease_ends_in),
                seconds(slot_in)
            ),
        }
    }
}

impl Snapshot {
    /// The status of the queue.
    pub fn start_status(&self) -> StartStatus {
        let record = &self.record;
        if record.paused {
            return StartStatus::Paused;
        }
        if record.held_until > self.at {
            return StartStatus::Held { ends_in: record.held_until - self.at };
        }
        let alive = record.shards.iter().filter(|(_, presence)| presence.expires_at > self.at);
        let heads = alive.filter_map(|(id, presence)| presence.head.map(|head| (head, id, presence)));
        let Some((ticket, shard, presence)) = heads.min_by_key(|(head, ..)| *head) else {
            return StartStatus::Empty;
        };
        let running = self.running();
        if let Some(limit) = record.max_running.filter(|limit| running >= u64::from(*limit)) {
            return StartStatus::AtMaxRunning { running, limit };
        }
        StartStatus::Next {
            ticket,
            shard: shard.clone(),
            label: presence.label.clone(),
            lease_ends_in: presence.expires_at - self.at,
            slot_in: record.next_slot(1) - self.at,
        }
    }

    /// Number of running jobs of living shards, as recorded.
    pub fn running(&self) -> u64 {
        let alive = self.record.shards.values().filter(|presence| presence.expires_at > self.at);
        alive.map(|presence| u64::from(presence.running)).sum()
    }
}
