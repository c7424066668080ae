//! The trait that a store of tasks implements.

use async_trait::async_trait;
use interval_queue_contract::{Changes, QueueName, StateError};

use crate::{Command, Reply};

/// A store of tasks, shared by all who add and run them.
///
/// A store that finds and writes rows atomically implements [`Rows`](crate::Rows) and gets every
/// rule from [`rules::apply`](crate::rules::apply).
///
/// # Requirements
///
/// - **Atomic.** A command is applied whole or not at all; commands on one queue do not visibly
///   interleave.
/// - **One clock.** Time is read while the rows are locked, from one clock that all processes
///   share.
/// - **Honest.** A reply is returned after its changes are stored. After an error other than
///   [`TimedOut`](interval_queue_contract::StateErrorKind::TimedOut) or
///   [`Unreachable`](interval_queue_contract::StateErrorKind::Unreachable) nothing was stored.
/// - **Careful.** Foreign content is an error that names it, and stays as it is.
/// - **Bounded.** A command fails within seconds if it cannot be served.
/// - **Non-blocking.** It never blocks the async runtime.
/// - **Cancel safe.** A command whose future was dropped has happened or has not.
///
/// The crate `interval-queue-task-conformance` checks these with one line.
#[async_trait]
pub trait TaskStore: std::fmt::Debug + Send + Sync + 'static {
    /// Applies one command to the tasks of `queue`, atomically.
    ///
    /// # Errors
    ///
    /// See [`StateErrorKind`](interval_queue_contract::StateErrorKind). After a time-out the
    /// command may have happened.
    ///
    /// # Cancel safety
    ///
    /// A dropped future leaves the command done or not done, never half done.
    async fn apply(&self, queue: &QueueName, command: Command) -> Result<Reply, StateError>;

    /// The queues that have tasks in this store, sorted by name.
    ///
    /// # Errors
    ///
    /// As [`apply`](Self::apply).
    async fn queues(&self) -> Result<Vec<QueueName>, StateError>;

    /// Watches `queue`, which need not exist. Yields an item soon after a task may have become
    /// ready, a run must stop, or something changed for all. An item is only a reason to poll:
    /// items may be merged, spurious or lost. A stream that can yield no more ends.
    ///
    /// # Errors
    ///
    /// [`Unsupported`](interval_queue_contract::StateErrorKind::Unsupported) if the store cannot
    /// notify; otherwise as [`apply`](Self::apply).
    ///
    /// # Cancel safety
    ///
    /// A dropped future watches nothing.
    async fn changes(&self, queue: &QueueName) -> Result<Changes, StateError>;
}

#[async_trait]
impl<S: TaskStore + ?Sized> TaskStore for std::sync::Arc<S> {
    async fn apply(&self, queue: &QueueName, command: Command) -> Result<Reply, StateError> {
        (**self).apply(queue, command).await
    }

    async fn queues(&self) -> Result<Vec<QueueName>, StateError> {
        (**self).queues().await
    }

    async fn changes(&self, queue: &QueueName) -> Result<Changes, StateError> {
        (**self).changes(queue).await
    }
}
