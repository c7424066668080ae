//! Restores a lost or rolled-back record from the memories of shards.

use crate::{Memory, Meter, Micros, Record, limits::CLOCK_TOLERANCE};

pub(super) struct Witness<'a> {
    pub(super) memory: &'a Memory,
    /// `None`: not listed.
    pub(super) sequence: Option<u64>,
}

/// Revision 0: [`lift`] restores the rest.
pub(super) fn recall(memory: &Memory) -> Option<Record> {
    (!memory.is_empty()).then(|| Record { revision: 0, ..Record::new(memory.settings()) })
}

/// After a loss, or a restart that may have caused one, the last slots may be unknown: the next one
/// is an interval away. Other witnesses of the same loss do not push it further.
pub(super) fn lift(record: &mut Record, now: Micros, incarnation: &str, witness: &Witness<'_>) {
    let Witness { memory, sequence } = witness;
    let restarted = record.incarnation != incarnation;
    let same_clock = memory.at <= now + CLOCK_TOLERANCE;
    let lost = memory.ticket > record.ticket
        || memory.current > record.current
        || memory.revision > record.revision
        // Between two changes of settings, meters only move forward.
        || same_clock && memory.revision == record.revision && memory.meters.is_ahead_of(&record.meters)
        || sequence.is_some_and(|known| known < memory.sequence);
    if !restarted && !lost {
        return;
    }
    if memory.revision > record.revision {
        record.meters.change(&memory.meters.rates(), record.last_slot, now);
        record.max_running = memory.max_running;
        record.paused = memory.paused;
        record.held_until = if same_clock { memory.held_until } else { record.held_until };
        record.revision = memory.revision;
    }
    if same_clock && memory.revision == record.revision {
        record.meters.lift(&memory.meters);
    }
    record.ticket = record.ticket.max(memory.ticket);
    record.current = record.current.max(memory.current);
    record.longest_lead = record.longest_lead.max(memory.longest_lead);
    if restarted || !same_clock || memory.at >= record.lifted_at {
        let seen = if same_clock { memory.at } else { Micros::ZERO };
        mark_used(record, seen, now + record.longest_lead);
        record.lifted_at = now;
    }
    if lost {
        record.gaps_until = record.ticket;
    }
    record.break_line(record.ticket.after(1));
    record.incarnation = incarnation.to_owned();
}

/// Slots up to `horizon` may have been granted since `seen`: as many as the meters permit count as
/// used.
fn mark_used(record: &mut Record, seen: Micros, horizon: Micros) {
    let granted = |meter: &Meter| {
        u64::from(meter.burst).saturating_add((horizon - seen).get().div_ceil(meter.interval.get().max(1)))
    };
    let granted = record.meters.iter().map(granted).min().unwrap_or(0);
    for meter in record.meters.iter_mut() {
        let owed = (meter.tat - horizon).get() / meter.interval.get().max(1);
        let used = owed.saturating_add(1).saturating_add(granted).min(meter.burst.into());
        meter.tat = meter.tat.max(horizon + meter.interval * used);
    }
    record.last_slot = record.last_slot.max(horizon);
}
