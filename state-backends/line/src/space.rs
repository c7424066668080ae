//! What keeps its distance: slots, or true starts.

use std::time::Duration;

use interval_queue_contract::Micros;

/// What keeps the interval of the queue; see `Builder::space_by` of the crate `interval-queue`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SpaceBy {
    /// Slots: a start that comes late is followed by a punctual one, a little less than an interval later.
    /// Nothing of the rate is lost. The default.
    #[default]
    Slots,
    /// Starts: one that comes late by more than 2 % of the interval (1 % below 20 ms) moves the next slot, at
    /// the price of a command, and one that could not be told in time is given up. For services that refuse
    /// what comes early, however little. It has an effect only without bursts, and where the interval is
    /// longer than two round trips to the state; elsewhere an event says that it has none.
    Starts,
}

/// From this interval on a start may be late by a fiftieth of it, below by a hundredth.
const COARSE: Duration = Duration::from_millis(20);

impl SpaceBy {
    /// How early to ask if round trips and timers make it `lead`. To tell of a late start takes half of the
    /// spacing: a host that is slow for a while asks later instead, and rather wastes time than has a start
    /// follow too closely. Where already the quickest round trip needs more, nothing could be told, and the
    /// lead stays.
    pub(crate) fn lead(self, lead: Micros, spacing: Duration, quickest: Duration) -> Micros {
        let most = (spacing / 2).max(quickest * 2);
        let told = self == Self::Starts && most < spacing;
        if told { lead.min(Micros::from_duration(most)) } else { lead }
    }

    /// How much later than its slot a start may come, at most, so that it can be told before the next one: an
    /// answer and half the lead of who comes next take no longer than the lead. None if it need not be told
    /// or cannot.
    pub(crate) fn tellable(self, spacing: Duration, lead: Duration) -> Option<Duration> {
        let told = self == Self::Starts;
        spacing.checked_sub(lead).filter(|tellable| told && !tellable.is_zero())
    }

    /// How late a start may be that is not told.
    pub(crate) fn borne(spacing: Duration) -> Duration {
        spacing / if spacing < COARSE { 100 } else { 50 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_host_can_still_tell_of_late_starts_and_a_far_one_cannot() {
        const MS: Duration = Duration::from_millis(1);
        let tellable = |space_by: SpaceBy, spacing, lead: u64, quickest| {
            let lead = space_by.lead(Micros::from_millis(lead), spacing, quickest);
            (lead.to_duration(), space_by.tellable(spacing, lead.to_duration()))
        };
        let starts = SpaceBy::Starts;
        assert_eq!(tellable(starts, MS * 10, 2, MS / 5), (MS * 2, Some(MS * 8)));
        // However late its timers are, it asks within the second half.
        assert_eq!(tellable(starts, MS * 10, 120, MS / 5), (MS * 5, Some(MS * 5)));
        assert_eq!(tellable(starts, MS * 10, 120, MS * 4), (MS * 8, Some(MS * 2)));
        assert_eq!(tellable(starts, MS * 10, 120, MS * 5), (MS * 120, None));
        // With bursts nothing lies between two slots, and slots are asked for as early as ever.
        assert_eq!(tellable(starts, Duration::ZERO, 120, MS / 5), (MS * 120, None));
        assert_eq!(tellable(SpaceBy::Slots, MS * 10, 120, MS / 5), (MS * 120, None));
    }
}
