//! How fast the queue that is opened may be.

use std::time::Duration;

use super::Builder;
use crate::pace::{Counted, Pace};

impl Builder {
    /// The time between two starts, over all processes: 1 µs to 366 days; fractions of a microsecond are
    /// rounded up. Default: what is stored, which is an error if nothing is.
    pub fn interval(self, interval: Duration) -> Self {
        self.pace(Pace::every(interval))
    }

    /// So many starts, over all processes, in the time that follows with `per`:
    /// `.rate(5).per(SECOND).burst(20)`. [`Pace`] has what rates mean.
    pub fn rate(self, count: u64) -> Counted<Self> {
        self.pace(Pace::default()).and(count)
    }

    /// How many starts of the rate that was named last may come at once; see [`Pace::burst`].
    pub fn burst(mut self, burst: u32) -> Self {
        self.pace = self.pace.burst(burst);
        self
    }

    /// And no more than so many starts in the time that follows with `per`: `.and(10_000).per(DAY)`.
    pub fn and(self, count: u64) -> Counted<Self> {
        Counted::new(self, count, |mut builder, count, per| {
            builder.pace = builder.pace.and(count).per(per);
            builder
        })
    }

    /// How fast the queue may be, instead of what was said before.
    pub fn pace(mut self, pace: impl Into<Pace>) -> Self {
        self.pace = pace.into();
        self
    }
}
