//! Slots in the order of time, and whether there are too many of them anywhere.

use interval_queue_contract::{
    Ticket,
    judge::{Eras, OverfullSpan, Slot},
};

/// How far back slots are remembered, in microseconds: farther than any two can be apart that matter.
const HISTORY_US: i64 = 600_000_000;

/// An instant, a ticket and a process.
pub(super) type Key = (i64, Ticket, usize);

/// Slots of one queue. Instants are microseconds of the record's clock, had it never been moved back: on that
/// clock slots keep their distance, however the store's is stepped.
#[derive(Default)]
pub(super) struct Timeline {
    /// What they are, and each one's number in the order in which slots were granted.
    keys: Vec<(Key, u64)>,
    /// The same for the judge.
    slots: Vec<Slot>,
}

/// A crowd of slots, by its first and last ticket.
pub(super) struct Close {
    pub(super) tickets: (Ticket, Ticket),
    pub(super) crowd: OverfullSpan,
}

impl Timeline {
    /// Adds a slot. If that makes too many of them, tells so and keeps those that were granted last, which is
    /// what the record goes on from.
    pub(super) fn insert(&mut self, key: Key, number: u64, slot: Slot, eras: &Eras) -> Option<Close> {
        self.remove(key);
        let mut place = self.place(key);
        self.keys.insert(place, (key, number));
        self.slots.insert(place, slot);
        let mut found = None;
        while let Some(crowd) = eras.overfull_span(&self.slots, place, 0) {
            let (first, last) = crowd.places;
            let ticket = |place: usize| self.keys[place].0.1;
            found = found.or(Some(Close { tickets: (ticket(first), ticket(last)), crowd }));
            let oldest = (first..=last).min_by_key(|place| self.keys[*place].1).unwrap_or(place);
            self.remove_at(oldest);
            if oldest == place {
                break;
            }
            place -= usize::from(oldest < place);
        }
        found
    }

    pub(super) fn remove(&mut self, key: Key) {
        let place = self.place(key);
        if self.keys.get(place).is_some_and(|(other, _)| *other == key) {
            self.remove_at(place);
        }
    }

    fn remove_at(&mut self, place: usize) {
        self.keys.remove(place);
        self.slots.remove(place);
    }

    /// Where it is, or would be.
    fn place(&self, key: Key) -> usize {
        self.keys.partition_point(|(other, _)| *other < key)
    }

    /// Forgets what is long past, much of it at once.
    pub(super) fn forget_before(&mut self, now: i64) {
        let past = self.place((now - HISTORY_US, Ticket::NONE, 0));
        if past > self.keys.len() / 4 {
            self.keys.drain(..past);
            self.slots.drain(..past);
        }
    }

    /// Forgets what is still to come of a process that is dead.
    pub(super) fn forget_process(&mut self, process: usize, now: i64) {
        let first = self.place((now + 1, Ticket::NONE, 0));
        for place in (first..self.keys.len()).rev() {
            if self.keys[place].0.2 == process {
                self.remove_at(place);
            }
        }
    }

    /// How many slots are still to come.
    pub(super) fn to_come(&self, now: i64) -> u64 {
        (self.keys.len() - self.place((now, Ticket::NONE, 0))) as u64
    }
}
