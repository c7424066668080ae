//! When a store's outage and its end are reported: once each, at a limited rate.

use std::time::{Duration, Instant};

/// An outage that may pass by itself is reported after this time, a lasting one at once.
pub const REPORT_DELAY: Duration = Duration::from_secs(5);

/// In a row, for a store that fails and recovers repeatedly.
const MAX_REPORTS: u32 = 4;

/// Time after which one more report is permitted.
const REPORT_REFILL: Duration = Duration::from_secs(60);

/// One process's reports about one store.
#[derive(Clone, Debug, Default)]
pub struct Outages {
    /// When the first command was sent that failed since the last reply.
    since: Option<Instant>,
    /// Kept until the outage's end is reported.
    reported: Option<Reported>,
    reports: Reports,
}

#[derive(Clone, Copy, Debug)]
struct Reported {
    since: Instant,
    is_lasting: bool,
}

impl Outages {
    /// A command sent at `sent` failed; `passes`: this may pass by itself. Returns whether to
    /// report it.
    ///
    /// A second error is reported only if it makes the outage a lasting one.
    pub fn failed(&mut self, passes: bool, sent: Instant, now: Instant) -> bool {
        let since = *self.since.get_or_insert(sent);
        let is_new = match self.reported {
            None => !passes || now.saturating_duration_since(since) >= REPORT_DELAY,
            Some(reported) => !passes && !reported.is_lasting,
        };
        let is_reported = is_new && self.reports.take(now);
        if is_reported {
            let since = self.reported.map_or(since, |reported| reported.since);
            self.reported = Some(Reported { since, is_lasting: !passes });
        }
        is_reported
    }

    /// A command succeeded. Returns the length of the outage if its end is to be reported.
    pub fn answered(&mut self, now: Instant) -> Option<Duration> {
        self.since = None;
        let reported = self.reported.take_if(|_| self.reports.take(now))?;
        Some(now.saturating_duration_since(reported.since))
    }

    /// Whether an outage was reported and its end was not.
    pub fn is_reported(&self) -> bool {
        self.reported.is_some()
    }
}

#[derive(Clone, Debug, Default)]
struct Reports {
    made: u32,
    from: Option<Instant>,
}

impl Reports {
    fn take(&mut self, now: Instant) -> bool {
        let from = *self.from.get_or_insert(now);
        let passed = now.saturating_duration_since(from).as_secs() / REPORT_REFILL.as_secs();
        let forgotten = u32::try_from(passed).unwrap_or(u32::MAX).min(self.made);
        self.made -= forgotten;
        self.from = if self.made == 0 { Some(now) } else { from.checked_add(REPORT_REFILL * forgotten) };
        let may = self.made < MAX_REPORTS;
        self.made += u32::from(may);
        may
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "any instant does")]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_lasting_outage_is_reported_once_and_at_once() {
        let (mut outages, start) = (Outages::default(), Instant::now());
        assert!(outages.failed(false, start, start));
        for second in 1..3600 {
            let now = start + SECOND * second;
            assert!(!outages.failed(second % 2 == 0, now, now), "{second}");
        }
        let end = start + SECOND * 3600;
        assert_eq!(outages.answered(end), Some(SECOND * 3600));
        assert_eq!(outages.answered(end), None);
    }

    #[test]
    fn a_passing_outage_is_reported_when_it_has_lasted() {
        let (mut outages, start) = (Outages::default(), Instant::now());
        assert!(!outages.failed(true, start, start));
        assert_eq!(outages.answered(start + SECOND), None, "a short one is not reported");
        let (sent, failed) = (start + SECOND * 10, start + SECOND * 15);
        assert!(outages.failed(true, sent, failed), "a command that hung counts from its sending");
        assert!(!outages.failed(true, failed, failed + SECOND * 9));
        assert!(outages.failed(false, failed, failed + SECOND * 10), "it has become a lasting one");
        assert_eq!(outages.answered(failed + SECOND * 20), Some(SECOND * 25));
    }

    #[test]
    fn a_flapping_store_makes_few_reports_and_the_last_is_true() {
        let (mut outages, start) = (Outages::default(), Instant::now());
        let mut reports = 0;
        for second in 0..600 {
            let now = start + SECOND * second;
            let is_made = if second % 2 == 0 {
                outages.failed(false, now, now)
            } else {
                outages.answered(now).is_some()
            };
            reports += u32::from(is_made);
        }
        assert!((5..=14).contains(&reports), "{reports}");
        let later = start + SECOND * 700;
        outages.answered(later);
        assert!(!outages.is_reported());
        assert!(outages.failed(false, later, later + SECOND), "reports are made again");
    }
}
