//! Where a play is played: a store whose clock the play sets.

use std::{fmt, sync::Arc};

use async_trait::async_trait;
use interval_queue_conformance::ManualClock;
use interval_queue_contract::{Micros, QueueName, StateError};
use interval_queue_task_contract::{Completed, Completion, TaskStore, WorkerId};

/// A store, empty when the play begins, whose clock stands still until the play sets it.
#[derive(Clone)]
pub struct Stage {
    /// The store.
    pub store: Arc<dyn TaskStore>,
    /// Its clock.
    pub clock: ManualClock,
    /// What can be done with a store that can be brought back to a copy.
    pub copies: Option<Arc<dyn Copies>>,
}

impl Stage {
    pub(crate) fn set_clock(&self, to: Micros) {
        let now = self.clock.now();
        self.clock.advance((to - now).to_duration());
        self.clock.step_back((now - to).to_duration());
    }
}

/// A store that can be rolled back.
pub trait Copies: Send + Sync {
    /// Keeps a copy of all that is stored.
    fn keep(&self);
    /// Stores what was kept, in place of what is there.
    fn bring_back(&self);
}

/// A store that transactions of an application can end runs in.
#[async_trait]
pub trait Within: Send + Sync {
    /// Ends a run within a transaction, and commits it. What is refused is rolled back.
    ///
    /// # Errors
    ///
    /// Those of [`complete_within`](interval_queue_task_contract::rules::complete_within).
    async fn end(
        &self,
        queue: &QueueName,
        worker: WorkerId,
        completion: &Completion,
    ) -> Result<Completed, StateError>;
}

impl fmt::Debug for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stage").field("store", &self.store).finish_non_exhaustive()
    }
}
