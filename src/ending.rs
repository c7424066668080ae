//! How a shard comes to rest.

use std::time::Duration;

use crate::{IntervalQueue, clock, host::timeout, telemetry::Refused, user_code::dispose};

/// What [`IntervalQueue::shutdown`] ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Shutdown {
    /// How many jobs had not started and were cancelled. Jobs between two attempts end with their last error
    /// instead.
    pub cancelled: usize,
    /// How many jobs still ran when the grace was over, and were aborted. Turns cannot be aborted.
    pub aborted: usize,
}

impl IntervalQueue {
    /// Waits until no job of this shard waits or runs and nothing of it is left in the record.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn wait_idle(&self) {
        self.shard.settle().await;
    }

    /// Takes no more jobs from this call on. The future waits until the accepted ones have finished.
    ///
    /// # Cancel safety
    ///
    /// Dropped, the queue is closed all the same.
    pub fn close(&self) -> impl Future<Output = ()> + use<'_> {
        self.shard.close();
        self.wait_idle()
    }

    /// Takes no more jobs, cancels those that wait and gives their places up, then gives the running ones
    /// `grace` to finish and aborts those that have not.
    ///
    /// # Cancel safety
    ///
    /// Dropped once it was polled, the waiting jobs are cancelled; running ones go on.
    pub async fn shutdown(&self, grace: Duration) -> Shutdown {
        self.shard.close();
        let (arriving, waiting) = {
            let mut line = self.shard.line();
            line.shut_down = true;
            line.withdraw_all()
        };
        let cancelled = arriving.len() + waiting.len();
        dispose((arriving, waiting));
        self.shard.telemetry.meter.refused(Refused::Closed, cancelled);
        self.shard.ended.notify_waiters();
        self.shard.wake();
        if timeout(&self.shard.host, grace, self.wait_idle()).await.is_some() {
            return Shutdown { cancelled, aborted: 0 };
        }
        let handles: Vec<_> = self.shard.line().running.values().flatten().cloned().collect();
        handles.iter().for_each(futures::future::AbortHandle::abort);
        // An aborted job ends where it next waits; one that never does is left behind.
        let _ = timeout(&self.shard.host, clock::ABORT_PATIENCE, self.wait_idle()).await;
        Shutdown { cancelled, aborted: handles.len() }
    }
}
