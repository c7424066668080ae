//! A job that runs, as its shard counts it.

use std::{
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use futures::future::AbortHandle;
use interval_queue_contract::Ticket;

use crate::{
    host::Host,
    line::JobId,
    telemetry::{Outcome, Run, Scope, Telemetry},
};

/// Where jobs run.
pub(crate) trait Runs: Send + Sync {
    fn host(&self) -> &Arc<dyn Host>;

    fn telemetry(&self) -> &Telemetry;

    /// Lets `shutdown` end a job.
    fn abort_with(&self, id: JobId, handle: AbortHandle);

    /// A job runs no more.
    fn ended(self: Arc<Self>, id: JobId);
}

/// The place of a running job: while it lives, the job counts as running.
pub(crate) struct Running {
    shard: Arc<dyn Runs>,
    id: JobId,
    pub(crate) ticket: Ticket,
    #[cfg(feature = "tower")]
    since: std::time::Instant,
    /// None if nobody listens.
    run: Option<Box<Run>>,
}

impl Running {
    pub(crate) fn new(shard: Arc<dyn Runs>, id: JobId, ticket: Ticket) -> Self {
        Self {
            #[cfg(feature = "tower")]
            since: shard.host().now(),
            shard,
            id,
            ticket,
            run: None,
        }
    }

    /// How long ago it started.
    #[cfg(feature = "tower")]
    pub(crate) fn age(&self) -> std::time::Duration {
        self.shard.host().now().saturating_duration_since(self.since)
    }

    pub(crate) fn observed(mut self, run: Option<Box<Run>>) -> Self {
        self.run = run;
        self
    }

    /// Its job begins, or an attempt of it.
    pub(crate) fn begin_job(&mut self, attempt: Option<u32>) {
        if let Some(run) = &mut self.run {
            run.begin_job(self.shard.telemetry(), self.ticket, attempt, self.shard.host().now());
        }
    }

    /// Polls its job, and drops it once it is done.
    pub(crate) fn poll<F: Future>(
        &self,
        job: Pin<&mut Option<F>>,
        context: &mut Context<'_>,
    ) -> Poll<F::Output> {
        match &self.run {
            Some(run) => run.poll(job, context),
            None => Scope::none().poll(job, context),
        }
    }

    /// Its turn begins.
    pub(crate) fn begin_turn(&mut self) {
        if let Some(run) = &mut self.run {
            run.begin_turn(self.shard.telemetry(), self.ticket, self.shard.host().now());
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

    pub(crate) fn id(&self) -> JobId {
        self.id
    }

    /// Where it runs.
    pub(crate) fn host(&self) -> Arc<dyn Host> {
        self.shard.host().clone()
    }

    /// Lets `shutdown` end the job.
    pub(crate) fn abort_with(&self, handle: AbortHandle) {
        self.shard.abort_with(self.id, handle);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.shard.clone().ended(self.id);
        // Last: subscribers are not ours, and may panic.
        if let Some(run) = self.run.take() {
            run.over(self.shard.telemetry(), self.ticket, self.shard.host().now());
        }
    }
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running").field("ticket", &self.ticket).finish_non_exhaustive()
    }
}
