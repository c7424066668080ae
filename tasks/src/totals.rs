//! What became of the runs of a worker.

use std::fmt;

use interval_queue_task_contract::Outcome;

/// What became of the runs of a worker. It is shown as one line, for a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Totals {
    /// Tasks that were done.
    pub done: u64,
    /// Runs that failed, for now or for good.
    pub failed: u64,
    /// Of those, the ones that failed for good by their own word.
    pub permanent: u64,
    /// Runs that asked to be run again.
    pub retried: u64,
    /// Runs that were given back.
    pub released: u64,
}

impl Totals {
    pub(crate) fn count(&mut self, outcome: &Outcome) {
        match outcome {
            Outcome::Done(_) => self.done += 1,
            Outcome::Error(_) => self.failed += 1,
            Outcome::Failed(_) => (self.failed, self.permanent) = (self.failed + 1, self.permanent + 1),
            Outcome::Retry(..) => self.retried += 1,
            _ => self.released += 1,
        }
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { done, failed, permanent, retried, released } = self;
        write!(
            f,
            "{done} done, {failed} failed ({permanent} for good), {retried} retried, {released} released"
        )
    }
}
