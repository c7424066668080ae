//! [`WorkerConnection`]: the state of a worker's connection to its store.

use std::time::{Duration, Instant};

use interval_queue::{Failing, StateError};

/// The connection of a worker to its store, as of the last poll; see
/// [`WorkerHandle::connection`](crate::WorkerHandle::connection).
///
/// Instants are by the clock of the [`Host`](crate::Host).
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct WorkerConnection {
    /// When the last poll was sent. `None`: no poll was sent.
    pub sent: Option<Instant>,
    /// The lease of the worker. `None`: no poll was answered.
    pub lease: Option<Lease>,
    /// Set while polls fail.
    pub failing: Option<Failing>,
}

/// The lease of a worker. When it ends, other workers may run the worker's tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Lease {
    /// When the poll was sent that renewed it.
    pub since: Instant,
    /// How long it holds from then on.
    pub length: Duration,
}

impl WorkerConnection {
    /// `renewed`: the new length of the lease, if the answer renewed it.
    pub(super) fn answered(&mut self, sent: Instant, renewed: Option<Duration>) {
        self.failing = None;
        self.lease = renewed.map(|length| Lease { since: sent, length }).or(self.lease);
    }

    pub(super) fn failed(&mut self, sent: Instant, error: &StateError) {
        Failing::record(&mut self.failing, error, sent);
    }
}
