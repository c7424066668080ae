//! Lost replies: their grants are repeated and paid for once. Only with bursts, since without them
//! the slots before the next one have passed.

use super::slot::Counter;
use crate::{Ask, Grant, Micros, Presence, Record, Step};

pub(super) fn unreceived(known: Option<Presence>, step: &Step) -> Vec<Grant> {
    known.filter(|known| known.sequence > step.memory.sequence).map_or_else(Vec::new, |known| known.granted)
}

pub(super) fn remembered(record: &Record, grants: &[Grant], asked: impl Iterator<Item = Ask>) -> Vec<Grant> {
    // The last rate has the largest burst.
    if record.meters.last().is_none_or(|meter| meter.burst == 1) {
        return Vec::new();
    }
    grants.iter().zip(asked).filter(|(_, ask)| ask.weight == 1).map(|(grant, _)| *grant).collect()
}

impl Counter<'_> {
    /// Unless it is over an interval old or before the end of a hold.
    pub(super) fn slot_again(&self, ask: Ask) -> Option<Micros> {
        let slot = self.unreceived.iter().rfind(|grant| grant.ticket == ask.ticket)?.slot;
        let oldest = self.now - self.record.interval();
        (ask.weight == 1 && slot >= oldest.max(self.record.held_until)).then_some(slot)
    }
}
