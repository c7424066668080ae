//! The trait that a state backend implements.

use async_trait::async_trait;

use crate::{Command, QueueName, Reply, StateError, StateErrorKind};

/// A place where the records of queues live, shared by all shards that open it.
///
/// This trait is a contract between the author of a backend and the shards. A backend that can lock or
/// compare-and-swap a document gets every rule from [`rules::apply`](crate::rules::apply).
///
/// # What a backend owes
///
/// - **Atomic.** Two commands on one queue never interleave, from whatever process they come.
/// - **One clock.** `now` is read while the record is locked, from one clock that all processes share.
/// - **Honest.** What a reply says is stored before the reply is given. After an error other than
///   [`TimedOut`](StateErrorKind::TimedOut) or [`Unreachable`](StateErrorKind::Unreachable) nothing was stored.
/// - **Careful.** Content that is not such a record is an error and is left as it is.
/// - **Bounded.** A command that cannot be served ends in an error after seconds, not never.
/// - **Out of the way.** It never blocks the async runtime.
/// - **Cancel safe.** A future that is dropped has happened or has not; in either case the next command works.
///
/// The crate `interval-queue-conformance` checks these with one line.
///
/// # Example
///
/// A whole backend, for the shards of one process:
///
/// ```
/// use std::{collections::HashMap, sync::Mutex, time::Instant};
/// use interval_queue_contract::{
///     Command, Micros, QueueName, Reading, Record, Reply, SharedState, StateError, rules,
/// };
///
/// #[derive(Debug)]
/// struct InMemory {
///     began: Instant,
///     records: Mutex<HashMap<QueueName, Option<Record>>>,
/// }
///
/// #[async_trait::async_trait]
/// impl SharedState for InMemory {
///     async fn apply(&self, queue: &QueueName, command: Command) -> Result<Reply, StateError> {
///         let mut records = self.records.lock().unwrap();
///         let now = Reading::of_clock(Micros::from_duration(self.began.elapsed()));
///         rules::apply(records.entry(queue.clone()).or_default(), &now, &command)
///     }
/// }
/// ```
#[async_trait]
pub trait SharedState: std::fmt::Debug + Send + Sync + 'static {
    /// Carries out one command on the record of `queue`, atomically.
    ///
    /// # Errors
    ///
    /// See [`StateErrorKind`]. A time-out is indeterminate: the command may have happened.
    ///
    /// # Cancel safety
    ///
    /// A dropped future leaves the command done or not done, never half done.
    async fn apply(&self, queue: &QueueName, command: Command) -> Result<Reply, StateError>;

    /// The queues that are stored here, sorted by name.
    ///
    /// # Errors
    ///
    /// [`Unsupported`](StateErrorKind::Unsupported) unless the backend implements it; else as [`apply`](Self::apply).
    async fn queues(&self) -> Result<Vec<QueueName>, StateError> {
        Err(StateError::new(StateErrorKind::Unsupported, "this state backend cannot list its queues"))
    }
}

#[async_trait]
impl<S: SharedState + ?Sized> SharedState for std::sync::Arc<S> {
    async fn apply(&self, queue: &QueueName, command: Command) -> Result<Reply, StateError> {
        (**self).apply(queue, command).await
    }

    async fn queues(&self) -> Result<Vec<QueueName>, StateError> {
        (**self).queues().await
    }
}
