//! A record that was lost or rewound is lifted again by what the shards remember.

use crate::{Memory, Micros, Record, limits::CLOCK_TOLERANCE};

/// What a shard knows that tells whether the record has forgotten something.
pub(super) struct Witness<'a> {
    /// What it saw last.
    pub(super) memory: &'a Memory,
    /// The sequence number that the record has of it, if it knows the shard.
    pub(super) sequence: Option<u64>,
}

/// The record that a shard remembers, for a queue that is not there any more.
pub(super) fn recall(memory: &Memory) -> Option<Record> {
    (!memory.is_empty()).then(|| Record { revision: 0, ..Record::new(memory.settings()) })
}

/// Lifts the record to what the witness remembers.
///
/// When something was lost, or the server may have lost it, the last slots may be unknown: the next one is an
/// interval away. Other witnesses of the same loss do not push it further.
pub(super) fn lift(record: &mut Record, now: Micros, incarnation: &str, witness: &Witness<'_>) {
    let Witness { memory, sequence } = witness;
    let restarted = record.incarnation != incarnation;
    let same_clock = memory.at <= now + CLOCK_TOLERANCE;
    let lost = memory.ticket > record.ticket
        || memory.current > record.current
        || memory.revision > record.revision
        // Between two changes of the settings the next slot only moves on.
        || same_clock && memory.revision == record.revision && memory.free_at > record.free_at
        || sequence.is_some_and(|known| known < memory.sequence);
    if !restarted && !lost {
        return;
    }
    if same_clock && memory.revision >= record.revision {
        record.free_at = record.free_at.max(memory.free_at);
    }
    if memory.revision > record.revision {
        record.interval = memory.interval;
        record.max_running = memory.max_running;
        record.paused = memory.paused;
        record.held_until = if same_clock { memory.held_until } else { record.held_until };
        record.revision = memory.revision;
    }
    record.ticket = record.ticket.max(memory.ticket);
    record.current = record.current.max(memory.current);
    record.longest_lead = record.longest_lead.max(memory.longest_lead);
    if restarted || !same_clock || memory.at >= record.lifted_at {
        record.free_at = record.free_at.max(now + record.interval + record.longest_lead);
        record.lifted_at = now;
    }
    if lost {
        record.gaps_until = record.ticket;
    }
    record.break_line(record.ticket.after(1));
    record.incarnation = incarnation.to_owned();
}
