//! A small random generator for faults and commands that repeat with a seed.

use std::ops::RangeInclusive;

/// SplitMix64, from Steele, Lea and Flood, "Fast splittable pseudorandom number generators" (OOPSLA
/// 2014), with the constants of Vigna's public-domain `splitmix64.c`.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn seeded(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number within `range`, which must be neither empty nor all of `u64`.
    pub(crate) fn within(&mut self, range: RangeInclusive<u64>) -> u64 {
        range.start() + self.next() % (range.end() - range.start() + 1)
    }

    /// An element of `some`, which must not be empty.
    pub(crate) fn pick<T: Copy>(&mut self, some: &[T]) -> T {
        some[(self.next() % some.len() as u64) as usize]
    }

    pub(crate) fn share(&mut self) -> f64 {
        const STEPS: f64 = (1_u64 << 53) as f64;
        (self.next() >> 11) as f64 / STEPS
    }

    /// True with probability `share`.
    pub(crate) fn happens(&mut self, share: f64) -> bool {
        self.share() < share
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn it_is_the_published_sequence() {
        let mut random = Random::seeded(1_234_567);
        assert_eq!(random.next(), 6_457_827_717_110_365_317);
        assert_eq!(random.next(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn both_ends_of_a_range_and_each_of_some_come() {
        let mut random = Random::seeded(7);
        let numbers: BTreeSet<u64> = (0..100).map(|_| random.within(3..=5)).collect();
        assert_eq!(numbers, BTreeSet::from([3, 4, 5]));
        let picked: BTreeSet<char> = (0..100).map(|_| random.pick(&['a', 'b'])).collect();
        assert_eq!(picked.len(), 2);
    }

    #[test]
    fn zero_never_happens_and_one_always() {
        let mut random = Random::seeded(7);
        assert!((0..1000).all(|_| !random.happens(0.0) && random.happens(1.0)));
        let halves = (0..1000).filter(|_| random.happens(0.5)).count();
        assert!((400..600).contains(&halves), "{halves} of 1000");
    }
}
