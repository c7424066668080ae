//! Whether slots or actual starts keep the interval.

use std::time::Duration;

use interval_queue_contract::Micros;

/// Whether slots or starts keep the interval; see `Builder::space_by` of the crate
/// `interval-queue`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SpaceBy {
    /// Slots. A punctual start may follow a late one after a little less than an interval. No rate
    /// is lost. The default.
    #[default]
    Slots,
    /// Starts. A start late by more than 2 % of the interval (1 % below 20 ms) moves the next slot,
    /// which costs a command; one that could not be reported in time is given up. For services that
    /// reject anything early. Effective only without bursts and if the interval is longer than two
    /// round trips to the store; otherwise an event reports that it has no effect.
    Starts,
}

/// From here on a start may be late by 1/50, below by 1/100.
const COARSE_SPACING: Duration = Duration::from_millis(20);

impl SpaceBy {
    /// With `Starts` at most half of the spacing, to report a late start: a slow host rather wastes
    /// time than starts too closely. If even the quickest round trip takes longer, no report is
    /// possible, and the lead stays.
    pub(crate) fn lead(self, lead: Micros, spacing: Duration, quickest: Duration) -> Micros {
        let most = (spacing / 2).max(quickest * 2);
        let reports = self == Self::Starts && most < spacing;
        if reports { lead.min(Micros::from_duration(most)) } else { lead }
    }

    /// Before the next start: a reply and half the next shard's lead take at most the lead. `None`:
    /// no report is needed or possible.
    pub(crate) fn reportable(self, spacing: Duration, lead: Duration) -> Option<Duration> {
        let reports = self == Self::Starts;
        spacing.checked_sub(lead).filter(|reportable| reports && !reportable.is_zero())
    }

    /// Needs no report.
    pub(crate) fn borne(spacing: Duration) -> Duration {
        spacing / if spacing < COARSE_SPACING { 100 } else { 50 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_host_reports_late_starts_and_a_far_one_cannot() {
        const MS: Duration = Duration::from_millis(1);
        let reportable = |space_by: SpaceBy, spacing, lead: u64, quickest| {
            let lead = space_by.lead(Micros::from_millis(lead), spacing, quickest);
            (lead.to_duration(), space_by.reportable(spacing, lead.to_duration()))
        };
        let starts = SpaceBy::Starts;
        assert_eq!(reportable(starts, MS * 10, 2, MS / 5), (MS * 2, Some(MS * 8)));
        // However late the timers, it requests within the second half.
        assert_eq!(reportable(starts, MS * 10, 120, MS / 5), (MS * 5, Some(MS * 5)));
        assert_eq!(reportable(starts, MS * 10, 120, MS * 4), (MS * 8, Some(MS * 2)));
        assert_eq!(reportable(starts, MS * 10, 120, MS * 5), (MS * 120, None));
        // Slots of a burst have no distance, and the lead stays.
        assert_eq!(reportable(starts, Duration::ZERO, 120, MS / 5), (MS * 120, None));
        assert_eq!(reportable(SpaceBy::Slots, MS * 10, 120, MS / 5), (MS * 120, None));
    }
}
