//! The trait that a backend implements.

use std::pin::Pin;

use async_trait::async_trait;
use futures_core::Stream;

use crate::{Command, QueueName, Reply, StateError, StateErrorKind};

/// Notifications of changes to a queue; see [`SharedState::changes`]. Drop to unsubscribe.
pub type Changes = Pin<Box<dyn Stream<Item = ()> + Send>>;

/// A store of queue records, shared by all shards that open it.
///
/// A backend that can lock a document, or compare and swap it, gets every rule from
/// [`rules::apply`](crate::rules::apply).
///
/// # Duties of a backend
///
/// - **Atomic.** Commands on one queue never interleave, even from different processes.
/// - **One clock.** `now` is read while the record is locked, from a clock that all processes
///   share.
/// - **Stored first.** The content of a reply is stored before the reply. After an error other than
///   [`TimedOut`](StateErrorKind::TimedOut) or [`Unreachable`](StateErrorKind::Unreachable) nothing
///   was stored.
/// - **Careful.** Content that is not a record is an error and stays untouched.
/// - **Bounded.** A command that cannot be served fails within seconds.
/// - **Non-blocking.** It never blocks the async runtime.
/// - **Cancel safe.** A dropped command is complete or without effect; the next command works.
///
/// The crate `interval-queue-conformance` checks these with one line.
///
/// # Example
///
/// A complete backend for the shards of one process:
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
    /// Executes one command on the record of `queue`, atomically.
    ///
    /// # Errors
    ///
    /// See [`StateErrorKind`]. After a time-out the command may have been executed.
    ///
    /// # Cancel safety
    ///
    /// The command of a dropped future is executed completely or not at all.
    async fn apply(&self, queue: &QueueName, command: Command) -> Result<Reply, StateError>;

    /// The stored queues, sorted by name.
    ///
    /// # Errors
    ///
    /// [`Unsupported`](StateErrorKind::Unsupported) unless the backend implements it; else as
    /// [`apply`](Self::apply).
    async fn queues(&self) -> Result<Vec<QueueName>, StateError> {
        Err(StateError::new(StateErrorKind::Unsupported, "this store's backend cannot list its queues"))
    }

    /// Watches `queue`, which need not exist. The stream yields an item soon after each change that
    /// concerns all shards, from any process: pause, resume, hold, new settings, reset, delete.
    ///
    /// An item only prompts its receiver to read the record. A backend that implements this owes:
    ///
    /// - **No gap at the start.** Once the future is ready, a change is either in the record or
    ///   followed by an item.
    /// - **Little noise.** Changes may share an item, and an item may come without a change. But a
    ///   [`Step`](Command::Step) or a [`Read`](Command::Read) causes none: a notified shard sends a
    ///   step, so shards would notify each other without end.
    /// - **A visible end.** A stream that can yield nothing more ends. After a reconnection it
    ///   yields an item, since it may have missed some. A lost item is permitted.
    /// - **No leftovers.** A dropped stream leaves no task, connection or thread.
    ///
    /// # Errors
    ///
    /// [`Unsupported`](StateErrorKind::Unsupported) unless the backend implements it; else as
    /// [`apply`](Self::apply).
    ///
    /// # Cancel safety
    ///
    /// A dropped future watches nothing.
    async fn changes(&self, queue: &QueueName) -> Result<Changes, StateError> {
        let text = format!("this store's backend cannot notify of changes of {queue}: leave wake-ups off");
        Err(StateError::new(StateErrorKind::Unsupported, text))
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

    async fn changes(&self, queue: &QueueName) -> Result<Changes, StateError> {
        (**self).changes(queue).await
    }
}
