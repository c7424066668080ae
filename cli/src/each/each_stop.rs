//! Why `each` ends before the end of its input.

use std::io;

use tokio::time::Instant;

use crate::exit::Failure;

/// Why nothing more is started before the input is done.
#[derive(Debug)]
pub(crate) enum Stop {
    Signal {
        number: i32,
        since: Instant,
        /// Whether a second one came.
        insisted: bool,
    },
    /// Nobody reads stdout any more.
    OutputClosed,
    OutputFailed(io::Error),
    /// A command failed, and `--fail-fast` was given.
    FirstFailure,
    Failure(Failure),
}
