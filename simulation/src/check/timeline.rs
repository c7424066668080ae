//! Slots in the order of time, and whether they are far enough apart.

use std::collections::BTreeMap;

use interval_queue_contract::{Micros, Ticket};

/// How far back slots are remembered, in microseconds: farther than any two can be apart that matter.
const REMEMBERED: i64 = 600_000_000;

/// Slots of one queue. Instants are microseconds of true time.
#[derive(Default)]
pub(super) struct Timeline {
    /// By instant, ticket and process.
    slots: BTreeMap<(i64, Ticket, usize), Slot>,
}

/// What a slot leaves free behind it.
#[derive(Clone, Copy)]
pub(super) struct Slot {
    pub(super) weight: u32,
    /// Which interval was in force, as a place among them all.
    pub(super) era: usize,
    /// Its number in the order in which slots were granted.
    pub(super) number: u64,
}

/// Two slots that are too close.
pub(super) struct Close {
    pub(super) tickets: (Ticket, Ticket),
    pub(super) distance: i64,
    pub(super) least: i64,
}

impl Timeline {
    /// Adds a slot. If a neighbour is too close by more than `slack`, tells so and keeps the one that was
    /// granted last, which is what the record goes on from.
    pub(super) fn insert(
        &mut self,
        key: (i64, Ticket, usize),
        slot: Slot,
        intervals: &[Micros],
        slack: i64,
    ) -> Option<Close> {
        let before = self.slots.range(..key).next_back();
        let before = before.map(|(other, it)| (*other, *it, key.0 - other.0, least(intervals, *it, slot)));
        let after = self.slots.range(key..).next();
        let after = after.map(|(other, it)| (*other, *it, other.0 - key.0, least(intervals, slot, *it)));
        let close =
            [before, after].into_iter().flatten().filter(|(.., distance, least)| distance + slack < *least);
        let close: Vec<_> = close.collect();
        for (other, ..) in close.iter().filter(|(_, it, ..)| it.number < slot.number) {
            self.slots.remove(other);
        }
        if close.iter().all(|(_, it, ..)| it.number < slot.number) {
            self.slots.insert(key, slot);
        }
        let (other, _, distance, least) = *close.first()?;
        Some(Close { tickets: (key.1, other.1), distance, least })
    }

    pub(super) fn remove(&mut self, key: (i64, Ticket, usize)) {
        self.slots.remove(&key);
    }

    /// Forgets what is long past.
    pub(super) fn forget_before(&mut self, now: i64) {
        while let Some(first) = self.slots.first_entry().filter(|first| first.key().0 < now - REMEMBERED) {
            first.remove();
        }
    }

    /// Forgets what is still to come of a process that is dead.
    pub(super) fn forget_process(&mut self, process: usize, now: i64) {
        self.slots.retain(|(slot, _, owner), _| *owner != process || *slot <= now);
    }

    /// How many slots are still to come.
    pub(super) fn to_come(&self, now: i64) -> u64 {
        self.slots.range((now, Ticket::NONE, 0)..).count() as u64
    }
}

/// How far one slot has to be from the next: every interval that was in force meanwhile allows it.
fn least(intervals: &[Micros], earlier: Slot, later: Slot) -> i64 {
    let eras = &intervals[earlier.era.min(later.era)..=earlier.era.max(later.era)];
    let interval = eras.iter().min().copied().unwrap_or_default();
    super::signed(interval * u64::from(earlier.weight))
}
