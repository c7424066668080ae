//! The one place that reads a clock.

use std::time::{Duration, Instant};

/// The shard's own clock. It follows tokio's virtual time where a test has paused it.
#[allow(clippy::disallowed_methods, reason = "this is the clock module")]
pub(crate) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

/// The time of day, for dates that others wrote. Nothing of the queue itself depends on it.
#[cfg(feature = "http")]
#[allow(clippy::disallowed_methods, reason = "this is the clock module")]
pub(crate) fn time_of_day() -> std::time::SystemTime {
    std::time::SystemTime::now()
}

/// Whether a test has paused tokio's time, which else is that of the system.
#[cfg(target_os = "linux")]
#[allow(clippy::disallowed_methods, reason = "this is the clock module")]
pub(crate) fn is_paused() -> bool {
    let before = std::time::Instant::now();
    let shown = now();
    shown < before || shown > std::time::Instant::now()
}

/// How long to wait for an aborted job to notice.
pub(crate) const ABORT_PATIENCE: Duration = Duration::from_secs(1);
