//! Idle, close and shutdown of a shard.

use std::time::Duration;

use crate::{IntervalQueue, clock, host::timeout, telemetry::Refused, user_code::dispose};

/// The jobs that [`IntervalQueue::shutdown`] ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Shutdown {
    /// Jobs cancelled before they started. Jobs between two attempts do not count; they end with
    /// their last error.
    pub cancelled: usize,
    /// Running jobs aborted after the grace period. Turns cannot be aborted.
    pub aborted: usize,
}

impl IntervalQueue {
    /// Waits until no job of this shard waits or runs and the record has no entry of the shard.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn wait_idle(&self) {
        self.shard.wait_idle().await;
    }

    /// Accepts no more jobs from this call on. The future waits until the accepted jobs have
    /// finished.
    ///
    /// # Cancel safety
    ///
    /// If dropped, the queue stays closed.
    pub fn close(&self) -> impl Future<Output = ()> + use<'_> {
        self.shard.close();
        self.wait_idle()
    }

    /// Accepts no more jobs, cancels the waiting ones, and aborts running ones that have not
    /// finished within `grace`.
    ///
    /// # Cancel safety
    ///
    /// If dropped after its first poll, the waiting jobs are cancelled and running jobs go on.
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
        // A job that never awaits is left running.
        let _ = timeout(&self.shard.host, clock::ABORT_TIMEOUT, self.wait_idle()).await;
        Shutdown { cancelled, aborted: handles.len() }
    }
}
