//! The reasons why `each` ends before the end of its input.

use std::io;

use tokio::time::Instant;

use crate::exit::Failure;

#[derive(Debug)]
pub(crate) enum Stop {
    Signal {
        number: i32,
        since: Instant,
        /// Whether a second signal arrived.
        repeated: bool,
    },
    /// The reader of stdout is gone.
    OutputClosed,
    OutputFailed(io::Error),
    /// A command failed, and `--fail-fast` was given.
    FirstFailure,
    Failure(Failure),
}
