//! The store's clock as seen by the shard, bounded by replies.

use std::time::{Duration, Instant};

use interval_queue_contract::Micros;

/// Clocks drift by at most 1/2000: 500 ppm, the most that NTP slews by (RFC 5905, section 11.3).
const DRIFT_DIVISOR: u32 = 2000;

/// Offset between the store's clock and ours.
///
/// The store replied between our sending and the arrival, which bounds the offset from both sides.
/// Bounds of replies are intersected, each widened by its age: the quickest reply counts for a
/// while.
#[derive(Clone, Copy, Debug)]
pub struct StateClock {
    origin: Instant,
    bounds: Option<Bounds>,
    stepped: Option<Instant>,
}

/// The store's instant less ours, in microseconds.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    least: i64,
    most: i64,
    at: Instant,
}

impl StateClock {
    /// A clock of unknown offset.
    pub fn new(origin: Instant) -> Self {
        Self { origin, bounds: None, stepped: None }
    }

    /// The store's clock showed `at` at some instant between `sent` and `received`.
    pub fn observe(&mut self, at: Micros, sent: Instant, received: Instant) {
        let at = signed(u128::from(at.get()));
        let seen = Bounds {
            least: at.saturating_sub(self.ours(received)),
            most: at.saturating_sub(self.ours(sent)),
            at: received,
        };
        let known = self.bounds.map(|bounds| {
            let aged = signed((received.saturating_duration_since(bounds.at) / DRIFT_DIVISOR).as_micros())
                .saturating_add(1);
            let least = seen.least.max(bounds.least.saturating_sub(aged));
            let most = seen.most.min(bounds.most.saturating_add(aged));
            Bounds { least, most, at: received }
        });
        let steady = known.filter(|bounds| bounds.least <= bounds.most);
        if known.is_some() && steady.is_none() {
            // Disjoint bounds: a clock was stepped.
            self.stepped = Some(received);
        }
        self.bounds = Some(steady.unwrap_or(seen));
    }

    /// Readings since `instant` compare.
    pub(crate) fn is_steady_since(&self, instant: Instant) -> bool {
        self.stepped.is_none_or(|stepped| instant >= stepped)
    }

    /// Includes drift until then: nothing starts before its slot.
    pub(crate) fn latest_for(&self, instant: Micros, fallback: Instant) -> Instant {
        let ours = self.ours_for(instant, fallback);
        let ahead = self.bounds.map_or(Duration::ZERO, |bounds| ours.saturating_duration_since(bounds.at));
        ours.checked_add(ahead / DRIFT_DIVISOR).unwrap_or(ours)
    }

    /// Does not include further drift.
    pub(crate) fn ours_for(&self, instant: Micros, fallback: Instant) -> Instant {
        let Some(bounds) = self.bounds else {
            return fallback;
        };
        let since_origin = signed(u128::from(instant.get())).saturating_sub(bounds.least);
        let since_origin = Duration::from_micros(u64::try_from(since_origin).unwrap_or(0));
        self.origin.checked_add(since_origin).unwrap_or(fallback)
    }

    /// The quickest recent round trip.
    pub(crate) fn uncertainty(&self) -> Duration {
        let width = self.bounds.map_or(0, |bounds| bounds.most.saturating_sub(bounds.least));
        Duration::from_micros(u64::try_from(width).unwrap_or(0))
    }

    pub(crate) fn theirs_for(&self, ours: Instant) -> Micros {
        let most = self.bounds.map_or(0, |bounds| bounds.most);
        Micros::new(u64::try_from(self.ours(ours).saturating_add(most)).unwrap_or(0))
    }

    fn ours(&self, instant: Instant) -> i64 {
        signed(instant.saturating_duration_since(self.origin).as_micros())
    }
}

fn signed(micros: u128) -> i64 {
    i64::try_from(micros).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn a_slot_is_never_read_too_early_and_quick_replies_sharpen_it() {
        let origin = crate::now();
        let mut clock = StateClock::new(origin);
        // The store's clock is 1 s ahead of `origin`. Round trips: 40 ms, then 1 ms.
        let truth = |ms: u32| Micros::from_millis(1000 + u64::from(ms));
        clock.observe(truth(1), origin, origin + MS * 41);
        assert_eq!(clock.ours_for(truth(100), origin), origin + MS * 140);
        clock.observe(truth(60), origin + MS * 50, origin + MS * 61);
        let read = clock.ours_for(truth(100), origin);
        assert!(read >= origin + MS * 100 && read <= origin + MS * 102, "{:?}", read - origin);
        // A slow reply later does not widen the bounds.
        clock.observe(truth(70), origin + MS * 69, origin + MS * 170);
        assert!(clock.ours_for(truth(200), origin) <= origin + MS * 202);
    }

    #[test]
    fn a_clock_that_is_fast_within_the_bounds_starts_nothing_early() {
        let origin = crate::now();
        let mut clock = StateClock::new(origin);
        clock.observe(Micros::from_millis(5000), origin, origin);
        // While the store's clock advances by 1 s, ours advances by 0.5 ms more.
        let slot = Micros::from_millis(6000);
        assert!(clock.latest_for(slot, origin) >= origin + MS * 1000 + MS / 2);
        assert_eq!(clock.ours_for(slot, origin), origin + MS * 1000);
    }

    #[test]
    fn a_stepped_clock_is_believed_at_once() {
        let origin = crate::now();
        let mut clock = StateClock::new(origin);
        clock.observe(Micros::from_millis(5000), origin, origin + MS);
        clock.observe(Micros::from_millis(1000), origin + MS * 10, origin + MS * 11);
        assert_eq!(clock.ours_for(Micros::from_millis(1000), origin), origin + MS * 11);
    }
}
