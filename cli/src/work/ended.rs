//! What a run came to.

use std::io;

use super::ends::Ends;
use crate::exit::Failure;

/// How a run ended.
#[derive(Debug)]
pub(crate) enum How {
    Code(i32),
    Signal(i32),
    TimedOut,
    /// It was stopped as it was asked to.
    Stopped,
    /// The guard ended it, since the lease was nearly over.
    LeaseOver,
    /// It was not started, or nobody knows how it ended.
    Unable(Failure),
    /// The guard ended, and CMD was killed.
    GuardGone(String),
}

/// What a run came to. Nothing that its guard can end is left.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) how: How,
    pub(crate) stdout: Ends,
    pub(crate) stderr: Ends,
}

impl Ended {
    pub(super) fn unable(what: &str, error: &io::Error) -> Self {
        let how = How::Unable(Failure { passes: true, ..Failure::os(what, error) });
        Self { how, stdout: Ends::default(), stderr: Ends::default() }
    }
}
