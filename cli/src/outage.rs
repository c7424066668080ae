//! Lines about a store that fails and answers again: one line each, however often a command is retried.

use interval_queue::contract::outage::Outages;
use tokio::time::Instant;

use crate::{clock::now, duration::about, exit::Failure, place::without_secrets};

/// The outages of one store, seen by one process.
#[derive(Debug)]
pub(crate) struct StoreOutages {
    /// The URL without its secrets.
    place: String,
    outages: Outages,
}

impl StoreOutages {
    pub(crate) fn of(url: &str) -> Self {
        Self { place: without_secrets(url), outages: Outages::default() }
    }

    /// A command that was sent then has failed. The line to print, if one is due.
    pub(crate) fn failed(&mut self, failure: &Failure, sent: Instant) -> Option<String> {
        let is_due = self.outages.failed(failure.passes, sent.into_std(), now().into_std());
        is_due.then(|| self.describe(failure))
    }

    /// A command was carried out. The line to print, if one is due.
    pub(crate) fn answered(&mut self) -> Option<String> {
        let outage = self.outages.answered(now().into_std())?;
        Some(format!("store {} answers again, after {}", self.place, about(outage)))
    }

    /// The failure as a line that names the store.
    pub(crate) fn describe(&self, failure: &Failure) -> String {
        let what = if failure.passes { "unreachable" } else { "unusable" };
        format!("store {} {what}: {}", self.place, failure.message)
    }
}
