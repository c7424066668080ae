//! The host's clock, for output and deadlines. No start depends on it.

use std::time::SystemTime;

use tokio::time::Instant;

/// The current instant of the monotonic clock.
#[allow(clippy::disallowed_methods, reason = "the clock module of this program")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// The current time of the wall clock.
#[allow(clippy::disallowed_methods, reason = "the clock module of this program")]
pub(crate) fn time_of_day() -> SystemTime {
    SystemTime::now()
}
