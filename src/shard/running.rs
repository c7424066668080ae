//! A running job as counted by its shard.

use std::{fmt, future::Future, pin::Pin, sync::Arc, time::Instant};

use futures::future::{AbortHandle, Abortable};
use interval_queue_contract::Ticket;

use super::Shard;
use crate::{
    error::Error,
    line::JobId,
    telemetry::{Outcome, Run},
};

/// Counts as running until dropped.
pub(crate) struct Running {
    pub(crate) shard: Arc<Shard>,
    pub(crate) id: JobId,
    pub(crate) ticket: Ticket,
    pub(crate) since: Instant,
    /// `None` if nothing subscribes.
    pub(crate) run: Option<Box<Run>>,
}

impl Running {
    /// The job or attempt is dropped on completion.
    pub(crate) async fn run<T>(
        &mut self,
        attempt: Option<u32>,
        job: Pin<&mut Option<Abortable<impl Future<Output = Result<T, Error>>>>>,
    ) -> Result<T, Error> {
        if let Some(run) = &mut self.run {
            run.begin_job(&self.shard.telemetry, self.ticket, attempt, self.shard.host.now());
        }
        let outcome = Run::scope(self.run.as_deref()).run_to_end(job).await;
        outcome.unwrap_or_else(|_| Err(Error::cancelled()))
    }

    /// This queue's span contains the starts in `others`.
    pub(crate) async fn run_with_others<T>(
        &mut self,
        others: &mut [Running],
        job: Pin<&mut Option<Abortable<impl Future<Output = Result<T, Error>>>>>,
    ) -> Result<T, Error> {
        if let Some(run) = &mut self.run {
            run.begin_job(&self.shard.telemetry, self.ticket, None, self.shard.host.now());
        }
        let scope = Run::scope(self.run.as_deref());
        for Running { shard, ticket, run, .. } in others {
            if let Some(run) = run {
                run.begin_in_span(scope.clone(), &shard.telemetry, *ticket, shard.host.now());
            }
        }
        scope.run_to_end(job).await.unwrap_or_else(|_| Err(Error::cancelled()))
    }

    pub(crate) fn begin_turn(&mut self) {
        if let Some(run) = &mut self.run {
            run.begin_turn(&self.shard.telemetry, self.ticket, self.shard.host.now());
        }
    }

    pub(crate) fn ended(&mut self, outcome: Outcome) {
        if let Some(run) = &mut self.run {
            run.ended(outcome);
        }
    }

    /// No report: another job takes the slot.
    pub(crate) fn pass_on(mut self) {
        self.run = None;
    }

    pub(crate) fn abort_with(&self, handle: AbortHandle) {
        self.shard.line().running.insert(self.id, Some(handle));
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.shard.line().finish(self.id) {
            self.shard.idle.notify_waiters();
            self.shard.wake();
        }
        // Last: subscribers may panic.
        if let Some(run) = self.run.take() {
            run.over(&self.shard.telemetry, self.ticket, self.shard.host.now());
        }
    }
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running").field("ticket", &self.ticket).finish_non_exhaustive()
    }
}
