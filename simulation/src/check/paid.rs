//! How far the used slots are paid for: when the next one is due.

use interval_queue_contract::{Rate, judge::Slot};

use super::signed;

/// For each rate, when its burst is full again, in microseconds of true time.
#[derive(Default)]
pub(super) struct Paid {
    era: usize,
    full: Vec<i64>,
}

impl Paid {
    /// Charges a slot. Returns from when on unused slots are wasted: the first rate's burst is
    /// full, and the others have a slot.
    pub(super) fn next(&mut self, slot: &Slot, rates: &[Rate]) -> i64 {
        if self.full.len() != rates.len() || self.era != slot.era {
            (self.era, self.full) = (slot.era, vec![i64::MIN; rates.len()]);
        }
        let mut next = slot.at;
        for (n, (full, rate)) in self.full.iter_mut().zip(rates).enumerate() {
            *full = (*full).max(slot.at) + signed(rate.interval * u64::from(slot.weight));
            let in_hand = if n == 0 { 0 } else { rate.burst - 1 };
            next = next.max(*full - signed(rate.interval * u64::from(in_hand)));
        }
        next
    }
}
