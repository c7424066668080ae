//! The host's clock, for what people are told and for deadlines. It decides about no start.

use std::time::SystemTime;

use tokio::time::Instant;

/// The instant it is.
#[allow(clippy::disallowed_methods, reason = "the clock module of this program")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// What the clock of the host shows.
#[allow(clippy::disallowed_methods, reason = "the clock module of this program")]
pub(crate) fn time_of_day() -> SystemTime {
    SystemTime::now()
}
