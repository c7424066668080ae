//! An item, from the input to its end.

use std::{ffi::OsString, time::Duration};

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};

use super::attempt::Why;

#[derive(Debug)]
pub(crate) struct Item {
    /// Counted from 0.
    pub(crate) number: u64,
    pub(crate) value: OsString,
    pub(crate) delays: ExponentialBackoff,
    pub(crate) why: Option<Why>,
}

impl Item {
    pub(crate) fn new(number: u64, value: OsString, retry: u32) -> Self {
        Self { number, value, delays: delays(retry), why: None }
    }
}

/// The delays of the library's own retries.
fn delays(times: u32) -> ExponentialBackoff {
    ExponentialBuilder::new()
        .with_max_times(usize::try_from(times).unwrap_or(usize::MAX))
        .with_min_delay(Duration::from_millis(100))
        .with_max_delay(Duration::from_secs(60))
        .with_jitter()
        .build()
}
