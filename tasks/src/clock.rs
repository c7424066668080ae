//! The one place that reads a clock.

use std::time::{Duration, Instant};

/// The clock of this process. It follows tokio's virtual time where a test has paused it.
#[allow(clippy::disallowed_methods, reason = "this is the clock module")]
pub(crate) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

/// Ends at an instant, if there is one.
pub(crate) async fn sleep_until(instant: Option<Instant>) {
    match instant {
        Some(instant) => tokio::time::sleep_until(instant.into()).await,
        None => std::future::pending().await,
    }
}

/// Ends after this time.
pub(crate) async fn sleep(time: Duration) {
    tokio::time::sleep(time).await;
}
