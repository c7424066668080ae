//! Waiting until something is so.

use std::{thread, time::Duration, time::Instant};

/// Far longer than anything takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Looks time and again, a minute at most, until something is so.
#[allow(clippy::disallowed_methods, reason = "how long a test waits is no matter of the state's clock")]
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "in vain waited until {what}");
        thread::sleep(Duration::from_millis(10));
    }
}
