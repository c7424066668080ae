//! The target of a run: a store with a settable clock.

use std::{fmt, sync::Arc};

use async_trait::async_trait;
use interval_queue_conformance::ManualClock;
use interval_queue_contract::{Micros, QueueName, StateError};
use interval_queue_task_contract::{Completed, Completion, TaskStore, WorkerId};

/// A store, empty at first, whose clock only the run sets.
#[derive(Clone)]
pub struct Target {
    /// The store.
    pub store: Arc<dyn TaskStore>,
    /// The store's clock.
    pub clock: ManualClock,
    /// Roll-backs of the store. `None`: unsupported.
    pub copies: Option<Arc<dyn Copies>>,
}

impl Target {
    pub(crate) fn set_clock(&self, to: Micros) {
        let now = self.clock.now();
        self.clock.advance((to - now).to_duration());
        self.clock.step_back((now - to).to_duration());
    }
}

/// A store that can be rolled back.
pub trait Copies: Send + Sync {
    /// Keeps a copy of all rows.
    fn keep(&self);
    /// Replaces all rows by the copy.
    fn bring_back(&self);
}

/// A store whose runs an application's transaction can complete.
#[async_trait]
pub trait Within: Send + Sync {
    /// Completes a run within a transaction and commits it. A rejection rolls it back.
    ///
    /// # Errors
    ///
    /// As [`complete_within`](interval_queue_task_contract::rules::complete_within).
    async fn end(
        &self,
        queue: &QueueName,
        worker: WorkerId,
        completion: &Completion,
    ) -> Result<Completed, StateError>;
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Target").field("store", &self.store).finish_non_exhaustive()
    }
}
