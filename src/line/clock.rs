//! Where the state's clock stands against the shard's own, and how early to ask. Both are told what replies
//! showed.

use std::time::Duration;

use interval_queue_contract::{MAX_LEAD, Micros};
use tokio::time::Instant;

/// How fast two clocks may drift apart: 500 ppm, the most that NTP slews by (RFC 5905, section 11.3).
const DRIFT: u32 = 2000;

/// Where the state's clock stands against ours.
///
/// The state answered between our sending and the arrival, which bounds the difference of the clocks from
/// both sides. Bounds of several replies are intersected, each widened by its age: the quickest reply counts
/// for a while.
#[derive(Debug)]
pub(crate) struct StateClock {
    origin: Instant,
    bounds: Option<Bounds>,
}

/// State's instant less ours, in microseconds.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    least: i64,
    most: i64,
    at: Instant,
}

impl StateClock {
    pub(crate) fn new(origin: Instant) -> Self {
        Self { origin, bounds: None }
    }

    /// Takes in that the state's clock showed `at` at some instant between `sent` and `received`.
    pub(crate) fn observe(&mut self, at: Micros, sent: Instant, received: Instant) {
        let at = signed(u128::from(at.get()));
        let seen = Bounds {
            least: at.saturating_sub(self.ours(received)),
            most: at.saturating_sub(self.ours(sent)),
            at: received,
        };
        let known = self.bounds.map(|bounds| {
            let aged =
                signed((received.saturating_duration_since(bounds.at) / DRIFT).as_micros()).saturating_add(1);
            let least = seen.least.max(bounds.least.saturating_sub(aged));
            let most = seen.most.min(bounds.most.saturating_add(aged));
            Bounds { least, most, at: received }
        });
        // Bounds that exclude each other mean that a clock was stepped.
        self.bounds = Some(known.filter(|bounds| bounds.least <= bounds.most).unwrap_or(seen));
    }

    /// Our instant for one of the state's: the latest it can be, so that nothing starts before its slot. That
    /// far ahead our own clock may drift, too.
    pub(crate) fn latest_for(&self, instant: Micros, fallback: Instant) -> Instant {
        let ours = self.ours_for(instant, fallback);
        let ahead = self.bounds.map_or(Duration::ZERO, |bounds| ours.saturating_duration_since(bounds.at));
        ours.checked_add(ahead / DRIFT).unwrap_or(ours)
    }

    /// Our instant for one of the state's, if the clocks do not drift from now on.
    pub(crate) fn ours_for(&self, instant: Micros, fallback: Instant) -> Instant {
        let Some(bounds) = self.bounds else {
            return fallback;
        };
        let since_origin = signed(u128::from(instant.get())).saturating_sub(bounds.least);
        let since_origin = Duration::from_micros(u64::try_from(since_origin).unwrap_or(0));
        self.origin.checked_add(since_origin).unwrap_or(fallback)
    }

    fn ours(&self, instant: Instant) -> i64 {
        signed(instant.saturating_duration_since(self.origin).as_micros())
    }
}

fn signed(micros: u128) -> i64 {
    i64::try_from(micros).unwrap_or(i64::MAX)
}

/// How early to ask for a slot: twice what a round trip and a late timer take, so that asking in the middle
/// of the lead leaves half of it for both.
#[derive(Debug, Default)]
pub(crate) struct Lead {
    round_trip: Estimate,
    lateness: Estimate,
}

/// The least lead, with timers as they were seen, and before they were.
const MIN_LEAD: Duration = Duration::from_millis(2);
/// See [`MIN_LEAD`].
const FIRST_LEAD: Duration = Duration::from_millis(4);

impl Lead {
    pub(crate) fn observe_round_trip(&mut self, sample: Duration) {
        self.round_trip.observe(sample);
    }

    pub(crate) fn observe_lateness(&mut self, sample: Duration) {
        self.lateness.observe(sample);
    }

    /// What a round trip takes, as a rule.
    pub(crate) fn round_trip(&self) -> Duration {
        self.round_trip.mean
    }

    /// The lead to give in the next step.
    pub(crate) fn get(&self) -> Micros {
        let needed = (self.round_trip.bound() + self.lateness.bound()) * 2;
        let least = if self.lateness.any { MIN_LEAD } else { FIRST_LEAD };
        Micros::from_duration(needed.max(least)).min(MAX_LEAD)
    }
}

/// Mean and mean deviation of a delay, as TCP keeps them for its retransmission timer (RFC 6298, section 2).
#[derive(Debug, Default)]
struct Estimate {
    mean: Duration,
    deviation: Duration,
    any: bool,
}

impl Estimate {
    fn observe(&mut self, sample: Duration) {
        let sample = sample.min(MAX_LEAD.to_duration());
        if !self.any {
            *self = Self { mean: sample, deviation: sample / 2, any: true };
            return;
        }
        self.deviation = (self.deviation * 3 + self.mean.abs_diff(sample)) / 4;
        self.mean = (self.mean * 7 + sample) / 8;
    }

    fn bound(&self) -> Duration {
        self.mean + self.deviation * 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn a_slot_is_never_read_too_early_and_quick_replies_sharpen_it() {
        let origin = crate::clock::now();
        let mut clock = StateClock::new(origin);
        // The state's clock is 1 s ahead of `origin`. The first reply took 40 ms back, the second 1 ms.
        let truth = |ms: u32| Micros::from_millis(1000 + u64::from(ms));
        clock.observe(truth(1), origin, origin + MS * 41);
        assert_eq!(clock.ours_for(truth(100), origin), origin + MS * 140);
        clock.observe(truth(60), origin + MS * 50, origin + MS * 61);
        let read = clock.ours_for(truth(100), origin);
        assert!(read >= origin + MS * 100 && read <= origin + MS * 102, "{:?}", read - origin);
        // A slow reply later does not blur what is known.
        clock.observe(truth(70), origin + MS * 69, origin + MS * 170);
        assert!(clock.ours_for(truth(200), origin) <= origin + MS * 202);
    }

    #[test]
    fn a_clock_that_is_fast_within_the_bounds_starts_nothing_early() {
        let origin = crate::clock::now();
        let mut clock = StateClock::new(origin);
        clock.observe(Micros::from_millis(5000), origin, origin);
        // While the state's clock goes on by a second, ours goes on by half a millisecond more.
        let slot = Micros::from_millis(6000);
        assert!(clock.latest_for(slot, origin) >= origin + MS * 1000 + MS / 2);
        assert_eq!(clock.ours_for(slot, origin), origin + MS * 1000);
    }

    #[test]
    fn a_stepped_clock_is_believed_at_once() {
        let origin = crate::clock::now();
        let mut clock = StateClock::new(origin);
        clock.observe(Micros::from_millis(5000), origin, origin + MS);
        clock.observe(Micros::from_millis(1000), origin + MS * 10, origin + MS * 11);
        assert_eq!(clock.ours_for(Micros::from_millis(1000), origin), origin + MS * 11);
    }

    #[test]
    fn the_lead_follows_the_round_trip_within_its_bounds() {
        let mut lead = Lead::default();
        assert_eq!(lead.get(), Micros::from_millis(4));
        (0..50).for_each(|_| lead.observe_round_trip(MS * 40));
        assert!(
            lead.get() >= Micros::from_millis(80) && lead.get() < Micros::from_millis(100),
            "{:?}",
            lead.get()
        );
        (0..50).for_each(|_| lead.observe_round_trip(MS * 60_000));
        assert_eq!(lead.get(), MAX_LEAD);
        (0..200).for_each(|_| lead.observe_round_trip(MS));
        assert!(lead.get() < Micros::from_millis(20));
    }
}
