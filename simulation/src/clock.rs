//! The host's clock: it times a search, and no simulation sees it.
#![allow(clippy::disallowed_methods, reason = "this is a clock module")]

use std::time::{Instant, SystemTime, UNIX_EPOCH};

pub(crate) fn now() -> Instant {
    Instant::now()
}

pub(crate) fn fresh_seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_micros()).unwrap_or_default()
}
