//! The clock of this host, for how long ago something was seen. Instants of the queue are the store's own.

use std::time::{Duration, Instant};

/// How long it has been watched.
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
