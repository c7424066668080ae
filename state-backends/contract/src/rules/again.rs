//! A reply that was lost: what it granted is granted again, and paid for once. Only where there are bursts, since
//! elsewhere it brings nothing: the slots in front of the next one are gone all the same.

use super::slot::Counter;
use crate::{Ask, Grant, Micros, Presence, Record, Step};

/// What the reply to the shard's last step granted, if the shard has not heard of it.
pub(super) fn unheard(known: Option<Presence>, step: &Step) -> Vec<Grant> {
    known.filter(|known| known.sequence > step.memory.sequence).map_or_else(Vec::new, |known| known.granted)
}

/// What of these grants is to be remembered, in case that the reply is lost.
pub(super) fn remembered(record: &Record, grants: &[Grant], asked: impl Iterator<Item = Ask>) -> Vec<Grant> {
    // Of several rates the last one has the largest burst.
    if record.meters.last().is_none_or(|meter| meter.burst == 1) {
        return Vec::new();
    }
    grants.iter().zip(asked).filter(|(_, ask)| ask.weight == 1).map(|(grant, _)| *grant).collect()
}

impl Counter<'_> {
    /// The slot that the ticket was granted without its shard having heard of it, unless that is an interval ago.
    pub(super) fn slot_again(&self, ask: Ask) -> Option<Micros> {
        let slot = self.unheard.iter().rfind(|grant| grant.ticket == ask.ticket)?.slot;
        let oldest = self.now - self.record.interval();
        (ask.weight == 1 && slot >= oldest.max(self.record.held_until)).then_some(slot)
    }
}
