//! The trait that a store of tasks implements.

use async_trait::async_trait;
use interval_queue_contract::{Changes, QueueName, StateError};

use crate::{Command, Reply};

/// A place where tasks are stored, shared by all who add and run them.
///
/// A store that can find rows and write them atomically gets every rule from [`rules::apply`](crate::rules::apply); it
/// implements [`Rows`](crate::Rows) and adds no rule of its own.
///
/// # What a store owes
///
/// - **Atomic.** A command is carried out whole or not at all, and two commands on one queue never interleave in a way
///   that their rows would show.
/// - **One clock.** Time is read while the rows are locked, from one clock that all processes share.
/// - **Honest.** What a reply says is stored before the reply is given. After an error other than
///   [`TimedOut`](interval_queue_contract::StateErrorKind::TimedOut) or
///   [`Unreachable`](interval_queue_contract::StateErrorKind::Unreachable) nothing was stored.
/// - **Careful.** Content that is not such a row is an error that names it, and is left as it is.
/// - **Bounded.** A command that cannot be served ends in an error after seconds, not never.
/// - **Out of the way.** It never blocks the async runtime.
/// - **Cancel safe.** A future that is dropped has happened or has not.
///
/// The crate `interval-queue-task-conformance` checks these with one line.
#[async_trait]
pub trait TaskStore: std::fmt::Debug + Send + Sync + 'static {
    /// Carries out one command on the tasks of `queue`, atomically.
    ///
    /// # Errors
    ///
    /// See [`StateErrorKind`](interval_queue_contract::StateErrorKind). A time-out is indeterminate: the command may
    /// have happened.
    ///
    /// # Cancel safety
    ///
    /// A dropped future leaves the command done or not done, never half done.
    async fn apply(&self, queue: &QueueName, command: Command) -> Result<Reply, StateError>;

    /// The queues that have tasks here, sorted by name.
    ///
    /// # Errors
    ///
    /// As [`apply`](Self::apply).
    async fn queues(&self) -> Result<Vec<QueueName>, StateError>;

    /// Begins to watch `queue`, whether or not it is there, and gives an item soon after something may have become
    /// ready, or is to be stopped, or was changed for all. An item is a nudge to look, no more: several changes may
    /// give one, one may come for nothing, and a lost one is no fault. A stream that can give no more items ends.
    ///
    /// # Errors
    ///
    /// [`Unsupported`](interval_queue_contract::StateErrorKind::Unsupported) where it cannot be watched; else as
    /// [`apply`](Self::apply).
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
