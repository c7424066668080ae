//! Which slot a ticket gets, and the effect of a grant.

use super::presence::{self, Others};
use crate::{
    Ask, Grant, Late, Micros, Record, Ticket, WaitReason,
    limits::{MAX_POLL, MIN_POLL, YIELDING_LEAD},
};

pub(super) struct Counter<'a> {
    pub(super) record: &'a mut Record,
    pub(super) others: Others,
    pub(super) now: Micros,
    pub(super) lead: Micros,
    pub(super) late: Late,
    /// Running jobs of all shards, including those just granted.
    pub(super) running: u64,
    pub(super) unreceived: Vec<Grant>,
}

impl Counter<'_> {
    /// Counts the ticket as running, or returns why it waits.
    pub(super) fn grant(&mut self, ask: Ask) -> Result<Micros, WaitReason> {
        self.admit()?;
        if let Some(slot) = self.slot_again(ask) {
            self.running += 1;
            return Ok(slot);
        }
        if let Some(slot) = self.own_slot(ask) {
            // The first meter has paid for this slot already.
            self.record.meters.iter_mut().skip(1).for_each(|meter| meter.charge(slot, 1));
            self.running += 1;
            return Ok(slot);
        }
        let Ask { ticket, weight } = ask;
        let overtaken = ticket <= self.record.current;
        if overtaken && self.late == Late::Requeue {
            return Err(WaitReason::Missed);
        }
        let due = self.due(ask);
        if due > self.now + self.lead_for(ticket) {
            return Err(self.waits_for(ticket));
        }
        let slot = due.max(self.now);
        let in_line = self.is_in_line(slot, ticket);
        let record = &mut *self.record;
        // A grant that shifts slots: overtaken tickets lose the slots of their distance.
        if overtaken {
            record.break_line(record.current.after(1));
        } else if weight > 1 {
            record.break_line(ticket.after(1));
        } else if !in_line {
            record.break_line(ticket);
        }
        record.current = record.current.max(ticket);
        record.meters.charge(record.held_until, slot, weight);
        record.last_slot = record.last_slot.max(slot);
        self.running += 1;
        Ok(slot)
    }

    pub(super) fn admit(&self) -> Result<(), WaitReason> {
        if self.record.paused {
            return Err(WaitReason::Paused);
        }
        if presence::is_full(self.record, self.running) {
            return Err(WaitReason::AtMaxRunning);
        }
        Ok(())
    }

    /// The slot that an overtaken ticket still owns: shards request a little early, and their
    /// requests cross. A heavy job does not fit in between. With bursts there is none: a missed
    /// slot stays in the burst.
    pub(super) fn own_slot(&self, ask: Ask) -> Option<Micros> {
        let record = &*self.record;
        let ticket = ask.ticket;
        let countable = record.current < Ticket::MAX;
        let line = record.meters.first();
        let overtaken = ticket <= record.current && ticket >= record.line_from;
        if ask.weight > 1 || line.burst > 1 || !overtaken || !countable {
            return None;
        }
        let back = line.interval * record.current.after(1).behind(ticket);
        let slot = (line.tat >= self.now + back).then(|| line.tat - back)?;
        record.meters.iter().skip(1).all(|meter| meter.allows(1) <= slot).then_some(slot)
    }

    /// At its own place after tickets of living shards, otherwise as soon as any job may start.
    fn due(&self, ask: Ask) -> Micros {
        if self.is_first(ask.ticket) {
            self.record.next_slot(ask.weight)
        } else if ask.ticket <= self.record.current {
            self.by_distance(ask)
        } else {
            self.by_distance(ask) + self.courtesy(ask.ticket)
        }
    }

    /// At the ticket's own place, even if earlier tickets do not use theirs. Bursts are left to
    /// earlier heavy jobs, which would otherwise never find enough.
    pub(super) fn by_distance(&self, ask: Ask) -> Micros {
        let next = self.record.current.after(1);
        let kept = self.others.weight_before(ask.ticket, next);
        self.record.slot_behind(ask.ticket.behind(next), kept, ask.weight)
    }

    /// At its place among the waiting shards, whatever the ticket numbers.
    pub(super) fn by_rank(&self, ask: Ask) -> Micros {
        let kept = self.others.weight_before(ask.ticket, Ticket::NONE);
        self.record.slot_behind(self.rank(ask.ticket), kept, ask.weight)
    }

    /// By its distance on the first meter: only without bursts each ticket has its own slot.
    fn is_in_line(&self, slot: Micros, ticket: Ticket) -> bool {
        let line = self.record.meters.first();
        let first = line.tat.max(self.record.held_until);
        line.burst == 1 && slot == first + line.interval * ticket.behind(self.record.current.after(1))
    }

    /// Lets earlier tickets notice free permits, if these suffice only for them.
    pub(super) fn courtesy(&self, ticket: Ticket) -> Micros {
        if self.record.max_running.is_none() {
            return Micros::ZERO;
        }
        let full = |running| presence::is_full(self.record, running);
        let scarce = !full(self.running) && full(self.running + self.rank(ticket));
        if scarce { self.poll() * 2 } else { Micros::ZERO }
    }

    /// A late ticket of another shard comes first: otherwise a shard with a longer lead would
    /// always be served before it.
    pub(super) fn lead_for(&self, ticket: Ticket) -> Micros {
        let late =
            |head| head <= self.record.current && self.own_slot(Ask { ticket: head, weight: 1 }).is_none();
        if ticket > self.record.current && self.others.first.is_some_and(late) {
            self.lead.min(YIELDING_LEAD)
        } else {
            self.lead
        }
    }

    pub(super) fn poll(&self) -> Micros {
        self.record.meters.first().interval.clamp(MIN_POLL, MAX_POLL)
    }

    pub(super) fn is_first(&self, ticket: Ticket) -> bool {
        self.others.first.is_none_or(|first| first >= ticket)
    }

    pub(super) fn rank(&self, ticket: Ticket) -> u64 {
        self.others.heads.iter().filter(|head| **head < ticket).count() as u64
    }

    pub(super) fn waits_for(&self, ticket: Ticket) -> WaitReason {
        let shards = self.record.shards.iter();
        match shards.filter_map(|(id, presence)| Some((id, presence.head?))).min_by_key(|(_, head)| *head) {
            Some((shard, head)) if head < ticket => WaitReason::Behind { shard: shard.clone(), ticket: head },
            _ => WaitReason::Slot,
        }
    }
}
