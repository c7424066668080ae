//! The host's clock, for output and deadlines. No start depends on it.

use std::{
    future::pending,
    time::{Duration, SystemTime},
};

use tokio::time::{Instant, sleep, sleep_until};

#[allow(clippy::disallowed_methods, reason = "the clock module of this program")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

#[allow(clippy::disallowed_methods, reason = "the clock module of this program")]
pub(crate) fn time_of_day() -> SystemTime {
    SystemTime::now()
}

/// `None`: never.
pub(crate) async fn until(end: Option<Instant>) {
    match end {
        Some(end) => sleep_until(end).await,
        None => pending().await,
    }
}

/// `None`: never.
pub(crate) async fn expired(limit: Option<Duration>) -> Duration {
    match limit {
        Some(limit) => sleep(limit).await,
        None => pending().await,
    }
    limit.unwrap_or_default()
}
