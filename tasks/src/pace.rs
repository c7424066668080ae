//! The rate at which the tasks of a queue start: read, given, changed and removed while workers run.

use interval_queue::{IntervalQueue, OnExisting, Pace};

use crate::{TaskQueue, error::Error};

impl TaskQueue {
    /// The rate at which tasks start, as it is stored now: to [hold](IntervalQueue::hold) it for a `Retry-After`, say.
    /// `None`: the queue has no rate.
    ///
    /// # Errors
    ///
    /// [`Store`](crate::ErrorKind::Store) and [`Pace`](crate::ErrorKind::Pace) if the store fails.
    pub async fn pace(&self) -> Result<Option<IntervalQueue>, Error> {
        self.shared.rate.look(&*self.shared.host).await
    }

    /// Gives the queue a rate, or changes the one that it has: for all workers, from their next start on.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), interval_queue_tasks::Error> {
    /// # use std::time::Duration;
    /// # use interval_queue_tasks::{Pace, TaskQueue};
    /// # let queue = TaskQueue::builder("mails").connect("memory:").await?;
    /// queue.set_pace(Pace::every(Duration::from_millis(100))).await?;
    /// assert!(queue.pace().await?.is_some());
    /// queue.remove_pace().await?;
    /// assert!(queue.pace().await?.is_none());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Invalid`](crate::ErrorKind::Invalid) for a rate that cannot be. [`Store`](crate::ErrorKind::Store) and
    /// [`Pace`](crate::ErrorKind::Pace) if the store fails: it may have been set.
    pub async fn set_pace(&self, pace: impl Into<Pace>) -> Result<(), Error> {
        if let Some(queue) = self.shared.rate.open(Some(pace.into()), OnExisting::Replace).await? {
            queue.start();
        }
        Ok(())
    }

    /// Removes the rate of the queue: workers start tasks at once, within a second. Without one it does nothing.
    ///
    /// # Errors
    ///
    /// [`Store`](crate::ErrorKind::Store) if the store fails: it may have been removed.
    pub async fn remove_pace(&self) -> Result<(), Error> {
        self.shared.rate.remove(&*self.shared.host).await
    }
}
