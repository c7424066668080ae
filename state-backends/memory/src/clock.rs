//! The clock of the memory backend: the only place of this crate where the host's clock is read.
#![allow(clippy::disallowed_methods, reason = "this is a clock module")]

use std::time::Duration;

use interval_queue_contract::{Micros, Reading};
use tokio::time::Instant;

/// What the clock shows when it starts. Above zero, so that instants in the past exist.
const START: Duration = Duration::from_secs(1);

/// A clock that starts now and follows tokio's, also through virtual time.
pub(crate) fn tokio_clock() -> impl Fn() -> Reading + Send + Sync + 'static {
    let began = Instant::now();
    move || Reading::of_clock(Micros::from_duration(START + began.elapsed()))
}
