//! The result of a run.

use std::io;

use super::output_tail::OutputTail;
use crate::exit::Failure;

/// The end of a run.
#[derive(Debug)]
pub(crate) enum RunEnd {
    Code(i32),
    Signal(i32),
    TimedOut,
    /// Stopped on request.
    Stopped,
    /// The guard ended it, since the lease was about to end.
    LeaseOver,
    /// It was not started, or its end is unknown.
    Unable(Failure),
    /// The guard ended, and CMD was killed.
    GuardGone(String),
}

/// The result of a run. All processes that its guard can end have ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) how: RunEnd,
    pub(crate) stdout: OutputTail,
    pub(crate) stderr: OutputTail,
}

impl Ended {
    pub(super) fn unable(what: &str, error: &io::Error) -> Self {
        let how = RunEnd::Unable(Failure { passes: true, ..Failure::os(what, error) });
        Self { how, stdout: OutputTail::default(), stderr: OutputTail::default() }
    }
}
