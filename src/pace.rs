//! [`RateLimit`]: the rate of a queue as people state it: an interval, or starts per time.

use std::time::Duration;

use interval_queue_contract::{InvalidInput, MAX_BURST, MAX_INTERVAL, MIN_INTERVAL, Micros, Rate, Rates};

/// One second, for [`Counted::per`].
pub const SECOND: Duration = Duration::from_secs(1);
/// One minute.
pub const MINUTE: Duration = Duration::from_secs(60);
/// One hour.
pub const HOUR: Duration = Duration::from_secs(3600);
/// One day of 24 hours.
pub const DAY: Duration = Duration::from_secs(24 * 3600);

/// The rate of a queue: one to [eight](interval_queue_contract::MAX_RATES) rates, all of which
/// hold.
///
/// ```
/// use std::time::Duration;
/// use interval_queue::{DAY, RateLimit, SECOND};
///
/// let steady = RateLimit::every(Duration::from_millis(200));
/// let same = RateLimit::rate(5).per(SECOND);
/// let published = RateLimit::rate(5).per(SECOND).burst(20).and(10_000).per(DAY);
/// ```
///
/// | written | meaning |
/// |---|---|
/// | `every(d)` | starts are `d` apart |
/// | `rate(n).per(p)` | starts are `p / n` apart |
/// | `….burst(b)` | a token bucket: this rate in the long run, after idle time up to `b` at once |
/// | `….and(n).per(p)` with a faster rate | a quota: at most `n` in any `p`, up to a tenth of them at once |
///
/// With a burst of `b`, a span of time `t` has at most `b + t × n / p` slots. A quota has a slot
/// every `p / (n − n / 10)` in the long run, so that no window of `p` has more than `n`, wherever
/// it begins; a quota below 20 has evenly spaced slots. With its own burst it is an ordinary token
/// bucket, and a window may have `n + b`.
///
/// A rate implied by another has no effect, which is logged when the queue is opened. Intervals are
/// rounded up to whole microseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct RateLimit {
    wanted: Vec<Wanted>,
    /// A burst set before any rate: an error.
    misplaced: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Wanted {
    count: u64,
    per: Duration,
    burst: Option<u32>,
    /// Given as an interval, which is never a quota.
    even: bool,
}

impl RateLimit {
    /// One start every `interval`: 1 µs to 366 days.
    pub fn every(interval: Duration) -> Self {
        Self::default().plus(Wanted { count: 1, per: interval, burst: None, even: true })
    }

    /// `count` starts in the time that [`per`](Counted::per) sets: `RateLimit::rate(5).per(SECOND)`.
    pub fn rate(count: u64) -> Counted<Self> {
        Self::default().and(count)
    }

    /// How many starts of the last rate may come at once: 1 to 1,000,000. Default: 1; for a quota,
    /// a tenth.
    pub fn burst(mut self, burst: u32) -> Self {
        match self.wanted.last_mut() {
            Some(last) => last.burst = Some(burst),
            None => self.misplaced = Some(burst),
        }
        self
    }

    /// Adds a rate: at most `count` starts in the time that [`per`](Counted::per) sets.
    pub fn and(self, count: u64) -> Counted<Self> {
        Counted::new(self, count, |pace, count, per| {
            pace.plus(Wanted { count, per, burst: None, even: false })
        })
    }

    fn plus(mut self, wanted: Wanted) -> Self {
        self.wanted.push(wanted);
        self
    }

    pub(crate) fn is_empty(&self) -> bool {
        self == &Self::default()
    }

    /// Checks the rates.
    ///
    /// # Errors
    ///
    /// A rate is out of range, or there are too many; the error names it.
    pub fn check(&self) -> Result<(), InvalidInput> {
        self.resolve().map(drop)
    }

    /// The rates without effect, each with the rate that implies it.
    ///
    /// # Errors
    ///
    /// As [`check`](Self::check).
    pub fn without_effect(&self) -> Result<Vec<(Rate, Rate)>, InvalidInput> {
        self.resolve().map(|(_, implied)| implied)
    }

    /// The rates that have an effect, as the queue stores them.
    ///
    /// # Errors
    ///
    /// As [`check`](Self::check).
    pub fn rates(&self) -> Result<Rates, InvalidInput> {
        self.resolve().map(|(rates, _)| rates)
    }

    /// The stored rates, and each rate without effect with the rate that implies it.
    pub(crate) fn resolve(&self) -> Result<(Rates, Vec<(Rate, Rate)>), InvalidInput> {
        if let Some(burst) = self.misplaced {
            return Err(InvalidInput::new(format!(
                "a burst of {burst} without a rate: set the rate before it"
            )));
        }
        self.wanted.iter().try_for_each(Wanted::check)?;
        let fastest = self.wanted.iter().map(Wanted::apart).min();
        let wanted = self.wanted.iter().map(|wanted| wanted.rate(Some(wanted.apart()) != fastest));
        let wanted: Vec<_> = wanted.collect();
        let rates = Rates::of(wanted.iter().copied())?;
        let implied = wanted.into_iter().filter_map(|rate| Some((rate, rates.that_implies(rate)?))).collect();
        Ok((rates, implied))
    }
}

impl From<Duration> for RateLimit {
    fn from(interval: Duration) -> Self {
        Self::every(interval)
    }
}

impl Wanted {
    fn apart(&self) -> Micros {
        let nanos = self.per.as_nanos().div_ceil(u128::from(self.count.max(1)));
        Micros::from_duration(Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)))
    }

    fn check(&self) -> Result<(), InvalidInput> {
        let Self { count, per, burst, even } = *self;
        if even {
            return Ok(());
        }
        let refuse = |what: &str| Err(InvalidInput::new(format!("a rate of {count} per {per:?}: {what}")));
        if count == 0 {
            return refuse("give at least 1, or pause the queue");
        }
        if per < MIN_INTERVAL.to_duration() || per > MAX_INTERVAL.to_duration() {
            return refuse("the time is out of range: give 1µs to 366 days");
        }
        if per.as_nanos() < u128::from(count) * 1000 {
            return refuse("give at most one per microsecond");
        }
        if burst == Some(0) {
            return refuse(&format!("burst 0 is out of range: give 1 to {MAX_BURST}"));
        }
        Ok(())
    }

    /// A rate `slower` than another is a quota, unless it has its own burst.
    fn rate(&self, slower: bool) -> Rate {
        let tenth = u32::try_from(self.count / 10).unwrap_or(u32::MAX).min(MAX_BURST);
        match self.burst {
            Some(burst) => Rate { interval: self.apart(), burst },
            None if slower && !self.even && tenth > 1 => {
                let refilled = Self { count: self.count - u64::from(tenth), ..*self };
                Rate { interval: refilled.apart(), burst: tenth }
            }
            None => Rate::every(self.apart()),
        }
    }
}

/// A number of starts; [`per`](Self::per) adds the time.
#[derive(Clone, Debug)]
#[must_use = "give the period, with `per`"]
pub struct Counted<T> {
    of: T,
    count: u64,
    with: fn(T, u64, Duration) -> T,
}

impl<T> Counted<T> {
    /// For a builder of another crate: `with` adds the rate.
    #[doc(hidden)]
    pub fn new(of: T, count: u64, with: fn(T, u64, Duration) -> T) -> Self {
        Self { of, count, with }
    }

    /// Sets the time of the rate: 1 µs to 366 days.
    pub fn per(self, time: Duration) -> T {
        (self.with)(self.of, self.count, time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rates(pace: RateLimit) -> Vec<(u64, u32)> {
        let (rates, _) = pace.resolve().unwrap();
        rates.iter().map(|rate| (rate.interval.get(), rate.burst)).collect()
    }

    #[test]
    fn rates_are_what_is_published() {
        assert_eq!(rates(RateLimit::every(Duration::from_millis(200))), [(200_000, 1)]);
        assert_eq!(rates(RateLimit::rate(5).per(SECOND)), [(200_000, 1)]);
        assert_eq!(rates(RateLimit::rate(3).per(SECOND)), [(333_334, 1)], "rounded up");
        assert_eq!(rates(RateLimit::rate(5).per(SECOND).burst(20)), [(200_000, 20)]);
        let quota = [(200_000, 20), (9_600_000, 1_000)];
        assert_eq!(rates(RateLimit::rate(5).per(SECOND).burst(20).and(10_000).per(DAY)), quota);
        assert_eq!(
            rates(RateLimit::rate(10_000).per(DAY).and(5).per(SECOND).burst(20)),
            quota,
            "in any order"
        );
        let bucket = [(200_000, 20), (8_640_000, 50)];
        assert_eq!(rates(RateLimit::rate(5).per(SECOND).burst(20).and(10_000).per(DAY).burst(50)), bucket);
        assert_eq!(rates(RateLimit::rate(10_000).per(DAY)), [(8_640_000, 1)], "alone it is no quota");
    }

    #[test]
    fn a_quota_holds_in_every_window() {
        for (count, time) in [(10, MINUTE), (60, MINUTE), (99, HOUR), (10_000, DAY), (1_000_000, DAY)] {
            let (rates, _) =
                RateLimit::every(Duration::from_micros(1)).and(count).per(time).resolve().unwrap();
            let Rate { interval, burst } = rates[rates.len() - 1];
            // The end of a window is the beginning of the next.
            let most = u64::from(burst) + (time.as_micros() as u64 - 1) / interval.get();
            assert!(most <= count, "{count} per {time:?}: {most}");
        }
    }

    #[test]
    fn a_rate_without_effect_is_reported() {
        let (rates, implied) = RateLimit::every(SECOND).and(5).per(SECOND).burst(20).resolve().unwrap();
        assert_eq!(rates, Rates::every(Micros::from_duration(SECOND)));
        assert_eq!(implied, [(Rate { interval: Micros::from_millis(200), burst: 20 }, rates[0])]);
    }

    #[test]
    fn invalid_rate_limits_are_rejected() {
        let error = |pace: RateLimit| pace.resolve().unwrap_err().to_string();
        assert!(error(RateLimit::rate(0).per(SECOND)).contains("rate of 0 per 1s: give at least 1"));
        assert!(error(RateLimit::rate(1_000_000_000).per(SECOND)).contains("at most one per microsecond"));
        assert!(error(RateLimit::rate(5).per(Duration::ZERO)).contains("1µs to 366 days"));
        assert!(error(RateLimit::rate(5).per(SECOND).burst(0)).contains("burst 0"));
        assert!(error(RateLimit::every(SECOND).burst(0)).contains("burst 0"));
        assert!(error(RateLimit::every(Duration::ZERO)).contains("interval 0"));
        assert!(error(RateLimit::default().burst(5)).contains("without a rate"));
        let nine =
            (1..=9).fold(RateLimit::default(), |pace, n| pace.and(n).per(SECOND * n as u32).burst(n as u32));
        assert!(error(nine).contains("9 rates"));
    }
}
