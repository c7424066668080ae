//! [`Operators`] and [`Operator`]: read and change queues without being a shard of them.

use std::{sync::Arc, time::Duration};

use interval_queue_contract::{
    Change, Command, Deletion, MaxRunning, Memory, Micros, OnExisting, QueueName, Reading, SharedState,
    Snapshot, StateError, StateErrorKind, rules,
};

use crate::{RateLimit, Store, error::Error};

/// The queues of a store, to read and control them without being a shard: an operator takes no
/// ticket, runs no job and creates no queue unless asked to. For status pages and commands.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), interval_queue::Error> {
/// use std::time::Duration;
/// use interval_queue::{IntervalQueue, Operators, QueueName, connect};
///
/// let store = connect("memory:").await?;
/// let operator = Operators::open(&store).await?.of(&QueueName::new("mails")?);
/// assert!(operator.snapshot().await?.is_none());
///
/// IntervalQueue::builder("mails").interval(Duration::from_millis(20)).open(&store).await?;
/// assert!(operator.pause().await?.record.paused);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Operators {
    state: Arc<dyn SharedState>,
}

impl Operators {
    /// Opens the rates of the store.
    ///
    /// # Errors
    ///
    /// [`State`](crate::ErrorKind::State) if the store cannot be used.
    pub async fn open(store: impl Into<Store>) -> Result<Self, Error> {
        Ok(Self { state: store.into().rates().await? })
    }

    /// The names of the queues, sorted.
    ///
    /// # Errors
    ///
    /// [`State`](crate::ErrorKind::State). Retryable errors are returned after one retry, here and
    /// in each method of [`Operator`]: a connection that was closed while idle fails once.
    pub async fn names(&self) -> Result<Vec<QueueName>, Error> {
        match self.state.queues().await {
            Err(error) if error.is_retryable() => Ok(self.state.queues().await?),
            names => Ok(names?),
        }
    }

    /// The operator of a queue, which need not exist.
    #[must_use]
    pub fn of(&self, name: &QueueName) -> Operator {
        Operator { state: self.state.clone(), name: name.clone() }
    }
}

/// Reads and changes one queue. Made by [`Operators::of`].
#[derive(Clone, Debug)]
pub struct Operator {
    state: Arc<dyn SharedState>,
    name: QueueName,
}

impl Operator {
    /// The queue's name.
    pub fn name(&self) -> &QueueName {
        &self.name
    }

    /// The record of the queue, and the store's clock. `None`: there is no such queue.
    ///
    /// # Errors
    ///
    /// As [`Operators::names`].
    pub async fn snapshot(&self) -> Result<Option<Snapshot>, Error> {
        let read = || self.state.apply(&self.name, Command::Read);
        let reply = match read().await {
            Err(error) if error.is_retryable() => read().await?,
            reply => reply?,
        };
        Ok(reply.read()?)
    }

    /// Stops all starts, see [`IntervalQueue::pause`](crate::IntervalQueue::pause). Returns the
    /// queue after the change, as do the others.
    ///
    /// # Errors
    ///
    /// As [`Operators::names`]; of kind [`NotFound`](StateErrorKind::NotFound) if there is no
    /// such queue.
    pub async fn pause(&self) -> Result<Snapshot, Error> {
        self.change(Change::Pause).await
    }

    /// Ends a pause.
    ///
    /// # Errors
    ///
    /// As [`pause`](Self::pause).
    pub async fn resume(&self) -> Result<Snapshot, Error> {
        self.change(Change::Resume).await
    }

    /// Stops all starts for this long, at most 366 days. A longer hold in force stays.
    ///
    /// # Errors
    ///
    /// As [`pause`](Self::pause), and [`Invalid`](crate::ErrorKind::Invalid) for more.
    pub async fn hold(&self, duration: Duration) -> Result<Snapshot, Error> {
        self.change(Change::Hold(Micros::from_duration(duration))).await
    }

    /// Clears the pause, the hold, reservations in the far future and the shards in the record, see
    /// [`IntervalQueue::reset`](crate::IntervalQueue::reset).
    ///
    /// # Errors
    ///
    /// As [`pause`](Self::pause).
    pub async fn reset(&self) -> Result<Snapshot, Error> {
        self.change(Change::Reset).await
    }

    /// Sets the rate and the limit of running jobs. `None`: the stored rate stays.
    ///
    /// # Errors
    ///
    /// As [`pause`](Self::pause), and [`Invalid`](crate::ErrorKind::Invalid).
    pub async fn set(&self, limit: Option<RateLimit>, max_running: MaxRunning) -> Result<Snapshot, Error> {
        let rates = limit.map(|limit| limit.rates()).transpose()?;
        self.change(Change::Set { rates, max_running }).await
    }

    /// As [`set`](Self::set), but creates the queue if it does not exist.
    ///
    /// # Errors
    ///
    /// As [`set`](Self::set).
    pub async fn create(&self, limit: RateLimit, max_running: MaxRunning) -> Result<Snapshot, Error> {
        let rates = Some(limit.rates()?);
        self.change(Change::Open { rates, max_running, on_existing: OnExisting::Replace }).await
    }

    async fn change(&self, change: Change) -> Result<Snapshot, Error> {
        let command = Command::Change(change, Memory::default());
        let changed = match self.state.apply(&self.name, command.clone()).await {
            Err(error) if error.is_retryable() => self.state.apply(&self.name, command).await,
            reply => reply,
        };
        let changed = changed?.changed()?;
        let gone = || StateError::new(StateErrorKind::NotFound, "another process deleted the queue");
        let snapshot = self.snapshot().await?.ok_or_else(gone)?;
        // A hold is as long as requested when it begins, not when it is read.
        Ok(Snapshot { at: changed.memory.at, ..snapshot })
    }
}

/// The error with which [`Store::delete`] would refuse to delete a queue that is as in this snapshot.
/// `None`: it would be deleted.
pub fn refuses(snapshot: &Snapshot, deletion: Deletion) -> Option<StateError> {
    let command = Command::Change(Change::Delete(deletion), Memory::default());
    rules::apply(&mut Some(snapshot.record.clone()), &Reading::of_clock(snapshot.at), &command).err()
}
