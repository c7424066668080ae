//! The clock of a store on one host, which is the host's.

use std::time::{SystemTime, UNIX_EPOCH};

/// What the host's clock says.
#[allow(clippy::disallowed_methods, reason = "the state's clock of files on one host")]
pub fn host() -> u64 {
    micros(SystemTime::now())
}

/// Microseconds since the epoch; an instant before it is zero.
pub fn micros(instant: SystemTime) -> u64 {
    let since_epoch = instant.duration_since(UNIX_EPOCH).unwrap_or_default().as_micros();
    u64::try_from(since_epoch).unwrap_or(u64::MAX)
}
