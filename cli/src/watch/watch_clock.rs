//! The clock of this host, for ages of reads. Instants of the queue are on the store's clock.

use std::time::{Duration, Instant};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock(Instant);

impl Clock {
    #[allow(clippy::disallowed_methods, reason = "the clock module of watch")]
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn now(self) -> Duration {
        self.0.elapsed()
    }
}
