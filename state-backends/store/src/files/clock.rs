//! The clock of a store on one host: the host's clock.

use std::time::{SystemTime, UNIX_EPOCH};

/// The host's time in microseconds since 1970.
#[allow(clippy::disallowed_methods, reason = "the state's clock of files on one host")]
pub fn host() -> u64 {
    micros(SystemTime::now())
}

/// Microseconds since 1970; zero for earlier instants.
pub fn micros(instant: SystemTime) -> u64 {
    let since_epoch = instant.duration_since(UNIX_EPOCH).unwrap_or_default().as_micros();
    u64::try_from(since_epoch).unwrap_or(u64::MAX)
}
