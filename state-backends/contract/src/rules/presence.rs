//! Leases: which shards are alive, and what dead ones leave.

use crate::{Micros, Record, Ticket};

/// Tickets of dead shards have no owner: until they are passed, distances overestimate the time.
pub(super) fn expire(record: &mut Record, now: Micros) {
    let mut holes = false;
    record.shards.retain(|_, presence| {
        let alive = presence.expires_at > now;
        holes |= !alive && presence.head.is_some();
        alive
    });
    if holes {
        record.gaps_until = record.ticket;
    }
}

pub(super) struct Others {
    pub(super) heads: Vec<Ticket>,
    heavy: Vec<(Ticket, u32)>,
    pub(super) first: Option<Ticket>,
    pub(super) running: u64,
    pub(super) next_end: Micros,
}

impl Others {
    pub(super) fn of(record: &Record) -> Self {
        let heads = Vec::with_capacity(record.shards.len());
        let mut others = Self { heads, heavy: Vec::new(), first: None, running: 0, next_end: Micros::MAX };
        for presence in record.shards.values() {
            others.heads.extend(presence.head);
            others
                .heavy
                .extend(presence.head.map(|head| (head, presence.weight)).filter(|heavy| heavy.1 > 1));
            others.running += u64::from(presence.running);
            others.next_end = others.next_end.min(presence.expires_at);
        }
        others.first = others.heads.iter().min().copied();
        others
    }

    /// Less 1 for each head from `counted` on.
    pub(super) fn weight_before(&self, ticket: Ticket, counted: Ticket) -> u64 {
        let before = self.heavy.iter().filter(|(head, _)| *head < ticket);
        before.map(|(head, weight)| u64::from(*weight) - u64::from(*head >= counted)).sum()
    }
}

pub(super) fn is_full(record: &Record, running: u64) -> bool {
    record.max_running.is_some_and(|limit| running >= u64::from(limit))
}

pub(super) fn running(record: &Record) -> u64 {
    record.shards.values().map(|presence| u64::from(presence.running)).sum()
}

/// Slots passed while nothing could start: distances count from now.
pub(super) fn count_slots_from(record: &mut Record, now: Micros) {
    if record.meters.iter().any(|meter| meter.tat < now) {
        record.meters.iter_mut().for_each(|meter| meter.tat = meter.tat.max(now));
        // Earlier use is paid off.
        record.last_slot = record.last_slot.max(now);
        record.break_line(record.current.after(1));
    }
}
