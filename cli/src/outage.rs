//! Lines about a store that fails and answers again: one line per outage, whatever is retried.

use interval_queue::Outages;
use tokio::time::Instant;

use crate::{clock::now, exit::Failure, place::without_secrets};
use interval_queue_documents::words::about;

/// The outages of one store, as observed by one process.
#[derive(Debug)]
pub(crate) struct StoreOutages {
    /// The URL without secrets.
    place: String,
    outages: Outages,
}

impl StoreOutages {
    pub(crate) fn of(url: &str) -> Self {
        Self { place: without_secrets(url), outages: Outages::default() }
    }

    /// The command was sent at `sent`. Returns the line to print, if one is due.
    pub(crate) fn failed(&mut self, failure: &Failure, sent: Instant) -> Option<String> {
        let is_due = self.outages.failed(failure.passes, sent.into_std(), now().into_std());
        is_due.then(|| self.describe(failure))
    }

    /// Returns the line to print, if one is due.
    pub(crate) fn answered(&mut self) -> Option<String> {
        let outage = self.outages.answered(now().into_std())?;
        Some(format!("store {} answers again, after {}", self.place, about(outage)))
    }

    /// The line names the store.
    pub(crate) fn describe(&self, failure: &Failure) -> String {
        let what = if failure.passes { "unreachable" } else { "unusable" };
        format!("store {} {what}: {}", self.place, failure.message)
    }
}
