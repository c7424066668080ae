//! The rate options of [`Builder`].

use std::time::Duration;

use super::Builder;
use crate::pace::{Counted, RateLimit};

impl Builder {
    /// The time between two starts, over all processes: 1 µs to 366 days, rounded up to whole
    /// microseconds. Replaces earlier rates. Default: the stored rate; opening fails if none is
    /// stored.
    pub fn interval(self, interval: Duration) -> Self {
        self.rate_limit(RateLimit::every(interval))
    }

    /// At most `count` starts in the time given to `per`, over all processes:
    /// `.rate(5).per(SECOND).burst(20)`. Replaces earlier rates. See [`RateLimit`].
    pub fn rate(self, count: u64) -> Counted<Self> {
        self.rate_limit(RateLimit::default()).and(count)
    }

    /// How many starts of the latest rate may come at once; see [`RateLimit::burst`].
    pub fn burst(mut self, burst: u32) -> Self {
        self.pace = self.pace.burst(burst);
        self
    }

    /// Also at most `count` starts in the time given to `per`: `.and(10_000).per(DAY)`.
    pub fn and(self, count: u64) -> Counted<Self> {
        Counted::new(self, count, |mut builder, count, per| {
            builder.pace = builder.pace.and(count).per(per);
            builder
        })
    }

    /// The rates of the queue. Replaces earlier rates.
    pub fn rate_limit(mut self, limit: impl Into<RateLimit>) -> Self {
        self.pace = limit.into();
        self
    }
}
