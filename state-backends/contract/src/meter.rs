//! Meters measure the rates of a queue; together they give the next slot.

use std::ops::{Deref, DerefMut};

use serde::{Deserialize, Serialize};
use tinyvec::ArrayVec;

use crate::{MAX_RATES, Micros, Rate, Rates};

/// The remaining burst of one rate, as one instant (the generic cell rate algorithm, ITU-T I.371).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Meter {
    /// Time between two slots in the long run.
    pub interval: Micros,
    /// Maximum number of slots at once.
    pub burst: u32,
    /// Theoretical arrival time: the whole burst is available again. Without bursts, the next slot.
    pub tat: Micros,
}

impl Meter {
    /// The measured rate.
    pub const fn rate(self) -> Rate {
        Rate { interval: self.interval, burst: self.burst }
    }

    /// The rest, above the burst, is paid off afterwards.
    fn at_once(self, weight: u32) -> u32 {
        weight.min(self.burst)
    }

    pub(crate) fn allows(self, weight: u32) -> Micros {
        self.tat - self.interval * u64::from(self.burst - self.at_once(weight))
    }

    /// After `slots` slots of weight 1, the first at `first`, with `kept` of the burst left to
    /// others: at most `burst - 1`, since a job that needs it all requests first.
    fn allows_behind(self, first: Micros, slots: u64, kept: u64, weight: u32) -> Micros {
        let burst = u64::from(self.burst);
        let used = slots.saturating_add(kept.min(burst - 1)).saturating_add(self.at_once(weight).into());
        let full = self.tat.max(first);
        match used.checked_sub(burst) {
            Some(beyond) => full + self.interval * beyond,
            None => full - self.interval * (burst - used),
        }
    }

    pub(crate) fn charge(&mut self, slot: Micros, weight: u32) {
        self.tat = self.tat.max(slot) + self.interval * u64::from(weight);
    }

    /// At least 1.
    fn owes(self, from: Micros) -> u64 {
        (self.tat - from).get().div_ceil(self.interval.get().max(1)).max(1)
    }
}

/// The meters of a queue, in the order of its [`Rates`]. Empty: unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Meters(ArrayVec<[Meter; MAX_RATES]>);

impl Meters {
    /// Meters with full bursts.
    pub fn new(rates: &Rates) -> Self {
        rates
            .iter()
            .map(|rate| Meter { interval: rate.interval, burst: rate.burst, tat: Micros::ZERO })
            .collect()
    }

    /// The measured rates.
    pub fn rates(&self) -> Rates {
        Rates::raw(self.iter().map(|meter| meter.rate()))
    }

    /// The meter with the shortest interval.
    pub fn first(&self) -> Meter {
        self.0.first().copied().unwrap_or_default()
    }

    /// The longest interval.
    pub fn longest(&self) -> Micros {
        self.last().map_or(Micros::ZERO, |meter| meter.interval)
    }

    /// The earliest slot for a job of this weight.
    pub fn next_slot(&self, held_until: Micros, weight: u32) -> Micros {
        self.held(held_until).map(|meter| meter.allows(weight)).max().unwrap_or_default()
    }

    /// The slot of a job of this weight after `slots` jobs of weight 1, none before `from`, with
    /// `kept` of each burst left to heavier jobs. Exact if `kept` is 0.
    pub fn slot_behind(
        &self,
        held_until: Micros,
        from: Micros,
        slots: u64,
        kept: u64,
        weight: u32,
    ) -> Micros {
        let first = self.next_slot(held_until, 1).max(from);
        let behind = self.held(held_until).map(|meter| meter.allows_behind(first, slots, kept, weight));
        behind.max().unwrap_or_default().max(first)
    }

    pub(crate) fn charge(&mut self, held_until: Micros, slot: Micros, weight: u32) {
        *self = self.held(held_until).collect();
        self.iter_mut().for_each(|meter| meter.charge(slot, weight));
    }

    /// Replaces the rates. A meter of an unchanged rate stays; otherwise the debt carries over in
    /// slots, up to the new burst. If the number of rates changes, a new meter starts with the
    /// largest debt. The debt of a weight above the burst carries over in full, at least to the
    /// first meter.
    ///
    /// The debt counts from the last slot, and from now if that slot is in the future: a longer
    /// interval stretches the debt until then. The next slot never comes before the last one.
    pub(crate) fn change(&mut self, rates: &Rates, last_slot: Micros, now: Micros) {
        let before = *self;
        let as_many = before.len() == rates.len();
        let changed = |(n, rate): (usize, &Rate)| {
            if let Some(same) = before.iter().find(|meter| meter.rate() == *rate) {
                return *same;
            }
            let carried = |from: Micros| match before.get(n).filter(|_| as_many) {
                Some(meter) => meter.owes(from),
                None => before.iter().map(|meter| meter.owes(from)).max().unwrap_or(1),
            };
            let earlier = before.get(n).filter(|_| as_many || n == 0);
            let unpaid = earlier.map(|meter| meter.owes(last_slot));
            let unpaid = unpaid.filter(|owed| earlier.is_some_and(|meter| *owed > meter.burst.into()));
            let burst = u64::from(rate.burst);
            let last = last_slot + rate.interval * carried(last_slot).min(burst).max(unpaid.unwrap_or(0));
            let from = now.min(last_slot);
            let tat = last.max(from + rate.interval * carried(from).min(burst));
            Meter { interval: rate.interval, burst: rate.burst, tat }
        };
        *self = rates.iter().enumerate().map(changed).collect();
        if let Some(first) = self.0.first_mut().filter(|_| last_slot > now) {
            first.tat = first.tat.max(last_slot + first.interval * u64::from(first.burst - 1));
        }
    }

    /// Only meters of equal rates.
    pub(crate) fn lift(&mut self, to: &Self) {
        for (meter, to) in self.iter_mut().zip(to.iter()) {
            if meter.rate() == to.rate() {
                meter.tat = meter.tat.max(to.tat);
            }
        }
    }

    /// Compares meters of the same rate.
    pub(crate) fn is_ahead_of(&self, other: &Self) -> bool {
        self.iter().zip(other.iter()).any(|(one, other)| one.rate() == other.rate() && one.tat > other.tat)
    }

    pub(crate) fn move_back(&mut self, by: Micros) {
        self.iter_mut().for_each(|meter| meter.tat = meter.tat - by);
    }

    /// One slot at the hold's end, the whole first burst `burst - 1` intervals later.
    fn held(&self, until: Micros) -> impl Iterator<Item = Meter> {
        self.iter().enumerate().map(move |(n, meter)| {
            if n > 0 || until == Micros::ZERO {
                return *meter;
            }
            let full = until + meter.interval * u64::from(meter.burst.saturating_sub(1));
            Meter { tat: meter.tat.max(full), ..*meter }
        })
    }
}

impl FromIterator<Meter> for Meters {
    fn from_iter<I: IntoIterator<Item = Meter>>(meters: I) -> Self {
        Self(meters.into_iter().take(MAX_RATES).collect())
    }
}

impl Deref for Meters {
    type Target = [Meter];

    fn deref(&self) -> &[Meter] {
        &self.0
    }
}

impl DerefMut for Meters {
    fn deref_mut(&mut self) -> &mut [Meter] {
        &mut self.0
    }
}

#[cfg(test)]
mod tests {
    use fastrand::Rng;

    use super::*;
    use crate::judge::{Eras, Slot};

    fn micros(of: u64) -> Micros {
        Micros::new(of)
    }

    /// Meters from long idle to owing a whole burst at `at`.
    fn any(random: &mut Rng, at: u64) -> Meters {
        let rates = (0..random.usize(1..=4)).map(|_| Rate {
            interval: micros(random.u64(1..=60)),
            burst: random.choice([1, 1, 2, 3, 9]).unwrap(),
        });
        let mut meters = Meters::new(&Rates::of(rates).unwrap());
        for meter in meters.iter_mut() {
            let burst = meter.interval.get() * u64::from(meter.burst);
            meter.tat = micros(random.u64(at - 50..=at + burst));
        }
        meters
    }

    #[test]
    fn the_slot_after_others_comes_when_they_are_used() {
        let mut random = Rng::with_seed(3);
        for _ in 0..20_000 {
            let meters = any(&mut random, 1_000_000);
            let (slots, held) = (random.u64(0..=30), random.choice([0, 0, 1_000_040]).unwrap());
            let (from, weight) = (random.u64(999_900..=1_000_100), random.u32(1..=4));
            let (held, from) = (micros(held), micros(from));
            let mut used = meters;
            let mut last = from;
            for _ in 0..slots {
                last = used.next_slot(held, 1).max(last);
                used.charge(held, last, 1);
            }
            let expected = used.next_slot(held, weight).max(used.next_slot(held, 1)).max(last);
            assert_eq!(meters.slot_behind(held, from, slots, 0, weight), expected, "{meters:?} {slots}");
        }
    }

    #[test]
    fn a_change_of_rates_leaves_no_window_too_full() {
        let mut random = Rng::with_seed(4);
        let rates = |random: &mut Rng| {
            let rate = |random: &mut Rng| Rate {
                interval: micros(random.choice([5, 10, 40, 200]).unwrap()),
                burst: random.choice([1, 2, 5, 20]).unwrap(),
            };
            let count = random.usize(1..=2);
            Rates::of((0..count).map(|_| rate(random)).collect::<Vec<_>>()).unwrap()
        };
        for _ in 0..2_000 {
            let mut meters = Meters::new(&rates(&mut random));
            let mut at = micros(1_000_000);
            let heavy = random.bool();
            let (mut eras, mut slots) = (Eras::default(), Vec::new());
            for _ in 0..4 {
                eras.enter(meters.rates());
                for _ in 0..random.u64(1..30) {
                    let weight = if heavy { random.choice([1, 1, 1, 2, 6]).unwrap() } else { 1 };
                    at = (at + micros(random.choice([0, 0, 0, 7, 300]).unwrap()))
                        .max(meters.next_slot(Micros::ZERO, weight));
                    meters.charge(Micros::ZERO, at, weight);
                    slots.push(Slot { at: at.get() as i64, weight, era: eras.last() });
                    let overfull = eras.overfull_span(&slots, slots.len() - 1, 0);
                    assert_eq!(overfull, None, "{eras:?} {slots:?}");
                }
                meters.change(&rates(&mut random), at, at);
            }
        }
    }
}
