//! The trait that a state backend implements.

use std::pin::Pin;

use async_trait::async_trait;
use futures_core::Stream;

use crate::{Command, QueueName, Reply, StateError, StateErrorKind};

/// Nudges that a queue was changed for all shards, by whomever; see [`SharedState::changes`]. Dropping it
/// ends the watching.
pub type Changes = Pin<Box<dyn Stream<Item = ()> + Send>>;

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
///   [`TimedOut`](StateErrorKind::TimedOut) or [`Unreachable`](StateErrorKind::Unreachable) nothing was
///   stored.
/// - **Careful.** Content that is not such a record is an error and is left as it is.
/// - **Bounded.** A command that cannot be served ends in an error after seconds, not never.
/// - **Out of the way.** It never blocks the async runtime.
/// - **Cancel safe.** A future that is dropped has happened or has not; in either case the next command
///   works.
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
    /// [`Unsupported`](StateErrorKind::Unsupported) unless the backend implements it; else as
    /// [`apply`](Self::apply).
    async fn queues(&self) -> Result<Vec<QueueName>, StateError> {
        Err(StateError::new(StateErrorKind::Unsupported, "this state backend cannot list its queues"))
    }

    /// Begins to watch `queue`, whether or not it is there, and gives an item soon after each change for all
    /// its shards: pause, resume, hold, other settings, reset, delete, from whatever process.
    ///
    /// An item is a nudge to look, no more. A backend that implements this owes:
    ///
    /// - **No gap at the beginning.** Once the future is ready, a look at the record shows a change, or an
    ///   item follows it.
    /// - **Little noise.** Several changes may give one item, and an item may come without a change. But a
    ///   [`Step`](Command::Step) or a [`Read`](Command::Read) gives none: who is nudged sends a step, and
    ///   shards would nudge each other without end.
    /// - **An end it can see.** A stream that can give no more items ends. One that found its way back after
    ///   trouble gives an item, since it may have missed some. That a nudge is lost all the same is no fault.
    /// - **Quiet.** Nothing is left of it once the stream is dropped: no task, no connection, no thread.
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
        let text = format!("this state backend cannot tell when {queue} is changed: leave wake-ups off");
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
