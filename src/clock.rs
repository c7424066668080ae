//! The only module that reads a clock.

use std::time::{Duration, Instant};

/// Follows tokio's virtual time in tests that pause it.
#[allow(clippy::disallowed_methods, reason = "this is the clock module")]
pub(crate) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

/// For dates that others wrote; the queue itself never uses it.
#[cfg(feature = "http")]
#[allow(clippy::disallowed_methods, reason = "this is the clock module")]
pub(crate) fn time_of_day() -> std::time::SystemTime {
    std::time::SystemTime::now()
}

#[cfg(target_os = "linux")]
#[allow(clippy::disallowed_methods, reason = "this is the clock module")]
pub(crate) fn is_paused() -> bool {
    let before = std::time::Instant::now();
    let shown = now();
    shown < before || shown > std::time::Instant::now()
}

pub(crate) const ABORT_TIMEOUT: Duration = Duration::from_secs(1);
