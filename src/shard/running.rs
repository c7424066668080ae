//! A job that runs, as its shard counts it.

use std::{fmt, future::Future, pin::Pin, sync::Arc, time::Instant};

use futures::future::{AbortHandle, Abortable};
use interval_queue_contract::Ticket;

use super::Shard;
use crate::{
    error::Error,
    line::JobId,
    telemetry::{Outcome, Run},
};

/// The place of a running job: while it lives, the job counts as running.
pub(crate) struct Running {
    pub(crate) shard: Arc<Shard>,
    pub(crate) id: JobId,
    pub(crate) ticket: Ticket,
    /// When it started.
    pub(crate) since: Instant,
    /// None if nobody listens.
    pub(crate) run: Option<Box<Run>>,
}

impl Running {
    /// Runs its job, or an attempt of it, and drops that once it is done.
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

    /// The same for a job that occupies other places, too. They are told of in its span, which is that of
    /// this one.
    pub(crate) async fn run_beside<T>(
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
                run.begin_beside(scope.clone(), &shard.telemetry, *ticket, shard.host.now());
            }
        }
        scope.run_to_end(job).await.unwrap_or_else(|_| Err(Error::cancelled()))
    }

    /// Its turn begins.
    pub(crate) fn begin_turn(&mut self) {
        if let Some(run) = &mut self.run {
            run.begin_turn(&self.shard.telemetry, self.ticket, self.shard.host.now());
        }
    }

    /// How its job ended, or an attempt of it.
    pub(crate) fn ended(&mut self, outcome: Outcome) {
        if let Some(run) = &mut self.run {
            run.ended(outcome);
        }
    }

    /// Gives the place back, for another job in the same slot.
    pub(crate) fn pass_on(mut self) {
        self.run = None;
    }

    /// Lets `shutdown` end the job.
    pub(crate) fn abort_with(&self, handle: AbortHandle) {
        self.shard.line().running.insert(self.id, Some(handle));
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.shard.line().finish(self.id) {
            self.shard.settled.notify_waiters();
            self.shard.wake();
        }
        // Last: subscribers are not ours, and may panic.
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
