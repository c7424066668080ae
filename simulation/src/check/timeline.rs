//! Slots in the order of time, and whether there are too many of them anywhere.

use interval_queue_contract::{
    Ticket,
    judge::{Eras, OverfullSpan, Slot},
};

/// In microseconds: no two slots farther apart matter to each other.
const HISTORY_US: i64 = 600_000_000;

/// An instant, a ticket and a process.
pub(super) type Key = (i64, Ticket, usize);

/// Slots of one queue. Instants are microseconds of the record's clock, if never moved back: on it
/// slots keep their distance, however the store's clock is stepped.
#[derive(Default)]
pub(super) struct Timeline {
    /// With their numbers in the order of grants.
    keys: Vec<(Key, u64)>,
    slots: Vec<Slot>,
}

pub(super) struct Close {
    pub(super) tickets: (Ticket, Ticket),
    pub(super) crowd: OverfullSpan,
}

impl Timeline {
    /// If that makes too many slots, returns so and keeps the latest grants, on which the record
    /// goes on.
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

    fn place(&self, key: Key) -> usize {
        self.keys.partition_point(|(other, _)| *other < key)
    }

    pub(super) fn forget_before(&mut self, now: i64) {
        let past = self.place((now - HISTORY_US, Ticket::NONE, 0));
        if past > self.keys.len() / 4 {
            self.keys.drain(..past);
            self.slots.drain(..past);
        }
    }

    pub(super) fn forget_process(&mut self, process: usize, now: i64) {
        let first = self.place((now + 1, Ticket::NONE, 0));
        for place in (first..self.keys.len()).rev() {
            if self.keys[place].0.2 == process {
                self.remove_at(place);
            }
        }
    }

    pub(super) fn to_come(&self, now: i64) -> u64 {
        (self.keys.len() - self.place((now, Ticket::NONE, 0))) as u64
    }
}
