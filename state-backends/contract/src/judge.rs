//! Checks slots against the rates in force. For the proofs (model check, simulation, random
//! histories); no rule uses it.

use std::ops::RangeInclusive;

use crate::{Rate, Rates};

/// A granted slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Slot {
    /// Time in microseconds of any clock.
    pub at: i64,
    /// Weight of its job.
    pub weight: u32,
    /// Its era, from [`Eras::last`].
    pub era: usize,
}

/// A span with more slots than the rates permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OverfullSpan {
    /// Indices of its first and last slot.
    pub places: (usize, usize),
    /// Length in microseconds.
    pub span: i64,
    /// Least permitted length in microseconds.
    pub least: i64,
    /// The broken rate.
    pub rate: Rate,
}

/// All rates that were in force, in order. An index is an era.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Eras(Vec<Rates>);

struct Bound {
    rate: Rate,
    /// A weight above it waits only for the burst when the last slot is granted.
    burst: u32,
}

impl Eras {
    /// Sets the rates in force from now on.
    pub fn enter(&mut self, rates: Rates) {
        if self.0.last() != Some(&rates) {
            self.0.push(rates);
        }
    }

    /// The current era.
    pub fn last(&self) -> usize {
        self.0.len().saturating_sub(1)
    }

    /// The rates of an era.
    pub fn rates(&self, era: usize) -> &[Rate] {
        self.0.get(era).map_or(&[], |rates| rates)
    }

    /// The largest burst ever in force.
    pub fn largest_burst(&self) -> u32 {
        self.0.iter().flat_map(|rates| rates.iter()).map(|rate| rate.burst).max().unwrap_or(1)
    }

    /// The first span around the slot at `place` that is too full. `slots` must be sorted by time
    /// and, without that slot, be within the rates. Each slot may be off by `slack` microseconds.
    ///
    /// A span must be long enough for all its slots to follow one full burst. The last slot needs
    /// at most one burst, whatever its weight; so without bursts, weight n takes n intervals.
    pub fn overfull_span(&self, slots: &[Slot], place: usize, slack: i64) -> Option<OverfullSpan> {
        let mut between: u64 = 0;
        for (end, last) in slots.iter().enumerate().skip(place) {
            let mut weight = between;
            let mut eras = slots[place..=end].iter().map(|slot| slot.era).fold(last.era..=last.era, widen);
            let mut bounds = self.bounds(&eras, last.era);
            for (start, first) in slots[..end.min(place + 1)].iter().enumerate().rev() {
                weight += u64::from(first.weight);
                if !eras.contains(&first.era) {
                    eras = widen(eras, first.era);
                    bounds = self.bounds(&eras, last.era);
                }
                let span = last.at - first.at;
                let least = |bound: &Bound| {
                    let full = weight + u64::from(last.weight.min(bound.burst));
                    let paid = full.saturating_sub(bound.rate.burst.into());
                    i64::try_from(bound.rate.interval.get().saturating_mul(paid)).unwrap_or(i64::MAX)
                };
                let broken = bounds.iter().find(|bound| span.saturating_add(slack) < least(bound));
                if let Some(bound) = broken {
                    let least = least(bound);
                    return Some(OverfullSpan { places: (start, end), span, least, rate: bound.rate });
                }
                // Without bursts, distance from the neighbours implies distance from all.
                if start < place && bounds.iter().all(|bound| bound.rate.burst == 1) {
                    break;
                }
            }
            between += if end > place { u64::from(last.weight) } else { 0 };
        }
        None
    }

    /// The bounds on slots of these eras together, the last granted in era `last`: every rate in
    /// force throughout, and the shortest interval of the fastest rates, since a larger burst is
    /// available at once.
    fn bounds(&self, eras: &RangeInclusive<usize>, last: usize) -> Vec<Bound> {
        let Some(in_force) = self.0.get(eras.clone()) else { return Vec::new() };
        let Some((first, later)) = in_force.split_first() else { return Vec::new() };
        let lasting = first.iter().filter(|rate| later.iter().all(|rates| rates.contains(rate)));
        let mut bounds: Vec<_> = lasting.map(|rate| Bound { rate: *rate, burst: rate.burst }).collect();
        if !later.is_empty() {
            let fastest = |rates: &Rates| rates.first().copied().unwrap_or_default();
            let mut loosest = fastest(first);
            for pair in in_force.windows(2) {
                let [before, after] = [fastest(&pair[0]), fastest(&pair[1])];
                loosest.interval = loosest.interval.min(after.interval);
                loosest.burst += after.burst.saturating_sub(before.burst);
            }
            bounds.push(Bound { rate: loosest, burst: fastest(&self.0[last]).burst });
        }
        bounds
    }
}

fn widen(eras: RangeInclusive<usize>, era: usize) -> RangeInclusive<usize> {
    era.min(*eras.start())..=era.max(*eras.end())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Micros;

    fn rates(of: &[(u64, u32)]) -> Rates {
        let rate = |&(interval, burst)| Rate { interval: Micros::new(interval), burst };
        Rates::of(of.iter().map(rate)).unwrap()
    }

    /// Of the first overfull span as slots are added one by one.
    fn overfull(eras: &[&[(u64, u32)]], slots: &[(i64, u32, usize)]) -> Option<(i64, i64)> {
        let eras = Eras(eras.iter().map(|of| rates(of)).collect());
        let mut known: Vec<Slot> = Vec::new();
        slots.iter().find_map(|&(at, weight, era)| {
            let place = known.partition_point(|other| other.at <= at);
            known.insert(place, Slot { at, weight, era });
            eras.overfull_span(&known, place, 0).map(|overfull| (overfull.span, overfull.least))
        })
    }

    #[test]
    fn without_bursts_each_slot_keeps_its_distance() {
        let steady: &[&[(u64, u32)]] = &[&[(10, 1)]];
        assert_eq!(overfull(steady, &[(0, 1, 0), (10, 3, 0), (40, 1, 0)]), None);
        assert_eq!(overfull(steady, &[(0, 1, 0), (9, 1, 0)]), Some((9, 10)));
        assert_eq!(overfull(steady, &[(0, 1, 0), (10, 3, 0), (39, 1, 0)]), Some((29, 30)));
        assert_eq!(
            overfull(steady, &[(0, 1, 0), (19, 1, 0), (10, 1, 0)]),
            Some((9, 10)),
            "the one behind it"
        );
        assert_eq!(overfull(steady, &[(10, 1, 0), (1, 1, 0)]), Some((9, 10)));
    }

    #[test]
    fn no_span_has_more_than_a_burst_and_what_its_length_gives() {
        let bursts: &[&[(u64, u32)]] = &[&[(10, 3)]];
        let burst = [(0, 1, 0), (0, 1, 0), (0, 1, 0)];
        let with = |more: &[(i64, u32, usize)]| overfull(bursts, &[&burst, more].concat());
        assert_eq!(with(&[(10, 1, 0), (20, 1, 0), (50, 1, 0), (50, 1, 0), (50, 1, 0)]), None);
        assert_eq!(with(&[(9, 1, 0)]), Some((9, 10)));
        assert_eq!(with(&[(25, 1, 0), (25, 1, 0), (29, 1, 0)]), Some((29, 30)));
        assert_eq!(with(&[(40, 1, 0), (25, 1, 0), (40, 1, 0), (39, 1, 0)]), None);
        assert_eq!(with(&[(40, 1, 0), (25, 1, 0), (40, 1, 0), (39, 1, 0), (38, 1, 0)]), Some((2, 10)));
        // A heavy slot needs the whole burst and is paid off before the next.
        assert_eq!(with(&[(30, 5, 0), (60, 1, 0)]), None);
        assert_eq!(with(&[(29, 5, 0)]), Some((29, 30)));
        assert_eq!(with(&[(30, 5, 0), (59, 1, 0)]), Some((29, 30)));
    }

    #[test]
    fn every_rate_holds() {
        let quota: &[&[(u64, u32)]] = &[&[(10, 1), (100, 2)]];
        assert_eq!(overfull(quota, &[(0, 1, 0), (10, 1, 0), (100, 1, 0)]), None);
        assert_eq!(overfull(quota, &[(0, 1, 0), (10, 1, 0), (99, 1, 0)]), Some((99, 100)));
    }

    #[test]
    fn over_a_change_the_looser_rates_hold() {
        let slower: &[&[(u64, u32)]] = &[&[(10, 1)], &[(50, 1)], &[(20, 1)]];
        assert_eq!(overfull(slower, &[(0, 1, 0), (10, 1, 1), (60, 1, 1), (80, 1, 2)]), None);
        assert_eq!(overfull(slower, &[(0, 1, 0), (10, 1, 1), (29, 1, 2)]), Some((19, 20)));
        assert_eq!(overfull(slower, &[(0, 1, 0), (10, 1, 2), (18, 1, 2)]), Some((8, 20)));
        let more: &[&[(u64, u32)]] = &[&[(10, 2)], &[(10, 4)]];
        let both = [(0, 1, 0), (0, 1, 0), (0, 1, 1), (0, 1, 1)];
        assert_eq!(overfull(more, &both), None, "two more at once");
        assert_eq!(overfull(more, &[&both[..], &[(9, 1, 1)]].concat()), Some((9, 10)));
        let lasting: &[&[(u64, u32)]] = &[&[(5, 1), (100, 2)], &[(10, 1), (100, 2)]];
        assert_eq!(overfull(lasting, &[(0, 1, 0), (10, 1, 1), (99, 1, 1)]), Some((99, 100)));
    }
}
