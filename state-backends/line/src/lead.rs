//! How early to request a slot, from round trips and late timers.

use std::time::Duration;

use interval_queue_contract::{MAX_LEAD, Micros};

/// The lead: twice a round trip and a late timer. A request in the middle of it leaves half for
/// both.
#[derive(Debug, Default)]
pub struct Lead {
    round_trip: Estimate,
    lateness: Estimate,
}

/// Applies after the first measurement.
const MIN_LEAD: Duration = Duration::from_millis(2);
/// Applies before the first measurement.
const FIRST_LEAD: Duration = Duration::from_millis(4);

impl Lead {
    /// Records the time of a reply.
    pub fn observe_round_trip(&mut self, sample: Duration) {
        self.round_trip.observe(sample);
    }

    /// Records the lateness of a timer.
    pub fn observe_lateness(&mut self, sample: Duration) {
        self.lateness.observe(sample);
    }

    /// Mean time of a round trip.
    pub fn round_trip(&self) -> Duration {
        self.round_trip.mean
    }

    /// The lead of the next step.
    pub fn get(&self) -> Micros {
        let needed = (self.round_trip.bound() + self.lateness.bound()) * 2;
        let least = if self.lateness.any { MIN_LEAD } else { FIRST_LEAD };
        Micros::from_duration(needed.max(least)).min(MAX_LEAD)
    }
}

/// As in TCP's retransmission timer (RFC 6298, section 2).
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
