//! The rate of a queue: read, set and removed while workers run.

use interval_queue::{IntervalQueue, OnExisting, RateLimit};

use crate::{TaskQueue, error::Error};

impl TaskQueue {
    /// The stored rate, for example to [hold](IntervalQueue::hold) it for a `Retry-After`. `None`:
    /// no rate.
    ///
    /// # Errors
    ///
    /// [`Store`](crate::ErrorKind::Store) and [`RateLimit`](crate::ErrorKind::RateLimit).
    pub async fn rate_limit(&self) -> Result<Option<IntervalQueue>, Error> {
        self.shared.rate.refresh(&*self.shared.host).await
    }

    /// Sets the queue's rate for all workers, from their next start on.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), interval_queue_tasks::Error> {
    /// # use std::time::Duration;
    /// # use interval_queue_tasks::{RateLimit, TaskQueue};
    /// # let queue = TaskQueue::builder("mails").connect("memory:").await?;
    /// queue.set_rate_limit(RateLimit::every(Duration::from_millis(100))).await?;
    /// assert!(queue.rate_limit().await?.is_some());
    /// queue.remove_rate_limit().await?;
    /// assert!(queue.rate_limit().await?.is_none());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Invalid`](crate::ErrorKind::Invalid) for an invalid rate.
    /// [`Store`](crate::ErrorKind::Store) and [`RateLimit`](crate::ErrorKind::RateLimit): it may have
    /// been set.
    pub async fn set_rate_limit(&self, limit: impl Into<RateLimit>) -> Result<(), Error> {
        if let Some(queue) = self.shared.rate.open(Some(limit.into()), OnExisting::Replace).await? {
            queue.start();
        }
        Ok(())
    }

    /// Removes the queue's rate, if there is one: within a second workers start tasks without it.
    ///
    /// # Errors
    ///
    /// [`Store`](crate::ErrorKind::Store): it may have been removed.
    pub async fn remove_rate_limit(&self) -> Result<(), Error> {
        self.shared.rate.remove(&*self.shared.host).await
    }
}
