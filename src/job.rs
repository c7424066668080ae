//! Jobs: how one is started, and the handle that tells of it.

use std::{
    future::Future,
    panic::AssertUnwindSafe,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures::{
    FutureExt,
    channel::oneshot,
    future::{AbortHandle, abortable},
};
use interval_queue_contract::{InvalidInput, Ticket, check_weight};
use tokio::runtime::Handle;

use crate::{
    error::Error,
    line::{JobId, Start, Waiting},
    retry::Attempts,
    shard::{Running, Shard},
};

/// What to know of a job besides its future.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct JobOptions {
    weight: u32,
}

impl JobOptions {
    /// The options of an ordinary job.
    pub const fn new() -> Self {
        Self { weight: 1 }
    }

    /// How many intervals the job takes: the next slot comes that many intervals after its own. Default 1, at
    /// most 1,000,000.
    pub const fn weight(mut self, weight: u32) -> Self {
        self.weight = weight;
        self
    }

    pub(crate) fn check(self) -> Result<u32, InvalidInput> {
        check_weight(self.weight)?;
        Ok(self.weight)
    }
}

impl Default for JobOptions {
    fn default() -> Self {
        Self::new()
    }
}

/// A future of the application, started as a task of its own. The channel is not tokio's, which takes part in its cooperative
/// budget: with a hundred thousand in one `join_all` that costs minutes.
pub(crate) struct Task<F, T> {
    pub(crate) job: F,
    pub(crate) result: oneshot::Sender<Result<T, Error>>,
}

impl<F, T> Start for Task<F, T>
where
    F: Future<Output = T> + Send + 'static,
    T: Send + 'static,
{
    fn start(self: Box<Self>, place: Running) -> Result<Option<AbortHandle>, Running> {
        let Task { job, result } = *self;
        let (job, handle) = abortable(caught(job));
        let host = place.host();
        host.spawn(Box::pin(async move {
            let outcome = job.await.unwrap_or_else(|_| Err(Error::cancelled()));
            drop(place);
            // A detached job has nobody who wants its result.
            let _ = result.send(outcome);
        }));
        Ok(Some(handle))
    }
}

/// The future with a panic as its error.
pub(crate) async fn caught<T>(job: impl Future<Output = T>) -> Result<T, Error> {
    // `map` drops the future as soon as it is done, so that a panic of its destructor is caught, too.
    AssertUnwindSafe(job.map(std::convert::identity)).catch_unwind().await.map_err(Error::panicked)
}

/// Drops what belongs to a user where it can do no harm.
pub(crate) fn dispose(jobs: impl Send + 'static) {
    match Handle::try_current() {
        Ok(runtime) => drop(runtime.spawn(async move { drop(jobs) })),
        Err(_) => drop(jobs),
    }
}

/// A future of the result of a job that has its ticket.
///
/// Dropping the handle detaches it: the job runs all the same. [`JobHandle::cancel`] gives the place up.
///
/// # Errors
///
/// The future yields [`Cancelled`](crate::ErrorKind::Cancelled) if the job was cancelled, by its handle or by
/// [`shutdown`](crate::IntervalQueue::shutdown), or its runtime ended while it ran;
/// [`Panicked`](crate::ErrorKind::Panicked) if it panicked.
///
/// # Cancel safety
///
/// Awaiting `&mut handle` is cancel safe.
#[derive(Debug)]
#[must_use = "dropping it detaches the job; say so with `drop` or `.detach()`"]
pub struct JobHandle<T> {
    pub(crate) shard: Arc<Shard>,
    pub(crate) target: Target,
    pub(crate) ticket: Ticket,
    pub(crate) result: oneshot::Receiver<Result<T, Error>>,
}

/// What a handle cancels.
#[derive(Clone, Debug)]
pub(crate) enum Target {
    Job(JobId),
    Attempts(Arc<Attempts>),
}

impl<T> JobHandle<T> {
    /// The ticket that was taken for the job. If an older job of this shard is cancelled or starts alone, it starts with an
    /// earlier one. [`Ticket::NONE`] if it started alone before it had one; see
    /// [`WhenStateIsLost`](crate::WhenStateIsLost).
    pub fn ticket(&self) -> Ticket {
        self.ticket
    }

    /// How many tickets stand before it, at most, as far as this shard knows: some may not be used any more.
    /// None once it has started or was cancelled. Takes time in proportion to the jobs of this shard before it.
    pub fn position(&self) -> Option<u64> {
        let line = self.shard.line();
        line.ticket_of(self.job()).map(|ticket| line.memory.ahead_of(ticket))
    }

    /// In how long it starts if every ticket before it is used, as far as this shard knows. None once it has
    /// started or was cancelled, or while the queue is paused.
    pub fn estimated_start(&self) -> Option<Duration> {
        let line = self.shard.line();
        let ticket = line.ticket_of(self.job())?;
        if line.memory.paused {
            return None;
        }
        let now = self.shard.host.now();
        if let Some(start) = line.alone_start(self.job()) {
            return Some(start.saturating_duration_since(now));
        }
        let granted = line.grants.iter().find(|grant| grant.ticket == ticket).map(|grant| grant.slot);
        let slot = line.memory.at + line.memory.slot_in(ticket);
        let start = granted.unwrap_or_else(|| line.clock.ours_for(slot, now));
        Some(start.saturating_duration_since(now))
    }

    /// Cancels the job if it has not started and gives its place up; a job to be retried is not retried any more.
    /// True if it will not run (again).
    pub fn cancel(&self) -> bool {
        match &self.target {
            Target::Job(id) => self.shard.withdraw(*id).is_some(),
            Target::Attempts(attempts) => attempts.cancel(&self.shard),
        }
    }

    /// Lets the job run without anybody waiting for it.
    pub fn detach(self) {}

    fn job(&self) -> JobId {
        match &self.target {
            Target::Job(id) => *id,
            Target::Attempts(attempts) => attempts.current(),
        }
    }
}

impl<T> Future for JobHandle<T> {
    type Output = Result<T, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Poll::Ready(result) = Pin::new(&mut self.result).poll(context) else {
            self.shard.adopt();
            return Poll::Pending;
        };
        Poll::Ready(result.unwrap_or_else(|_| Err(Error::cancelled())))
    }
}

/// A job that runs the future.
pub(crate) fn task<F, T>(weight: u32, job: F) -> (Waiting, oneshot::Receiver<Result<T, Error>>)
where
    F: Future<Output = T> + Send + 'static,
    T: Send + 'static,
{
    let (sender, result) = oneshot::channel();
    (Waiting { weight, start: Box::new(Task { job, result: sender }) }, result)
}
