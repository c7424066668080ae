//! The state's clock, which is the host's: the only module that reads one, but for how long a command waits.

use std::time::{SystemTime, UNIX_EPOCH};

use interval_queue_contract::{Micros, Reading};

/// What the host's clock says.
#[allow(clippy::disallowed_methods, reason = "the state's clock of a database on one host")]
pub(crate) fn host() -> Reading {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros();
    Reading::of_clock(Micros::new(u64::try_from(since_epoch).unwrap_or(u64::MAX)))
}
