//! Clocks. No other module of this crate reads the host's clock.
#![allow(clippy::disallowed_methods, reason = "this is a clock module")]

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use interval_queue_contract::{Micros, Reading};
use tokio::time::Instant;

/// Above zero, so that instants in the past exist.
const START_TIME: Duration = Duration::from_secs(1);

/// Follows tokio's clock, including virtual time.
pub(crate) fn tokio_clock() -> impl Fn() -> Reading + Send + Sync + 'static {
    let began = Instant::now();
    move || Reading::of_clock(Micros::from_duration(START_TIME + began.elapsed()))
}

/// Starts at the host's time and follows tokio's clock, including virtual time.
pub(crate) fn wall_clock() -> impl Fn() -> Micros + Send + Sync + 'static {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let began = Instant::now();
    move || Micros::from_duration(since_epoch + began.elapsed())
}
