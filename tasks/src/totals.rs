//! Counts of a worker's runs by outcome.

use std::fmt;

use interval_queue_task_contract::Outcome;

/// Counts of a worker's runs by outcome. `Display` is one line for a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Totals {
    /// Tasks done.
    pub done: u64,
    /// Failed runs, including those to be retried.
    pub failed: u64,
    /// Failed runs whose handler reported a permanent failure; part of `failed`.
    pub permanent: u64,
    /// Runs that asked to run again.
    pub retried: u64,
    /// Runs given back, without an outcome.
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
