//! The start of a job, and [`JobHandle`].

use std::{
    future::Future,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures::{
    FutureExt,
    channel::oneshot,
    future::{AbortHandle, abortable},
};
use interval_queue_contract::Ticket;

use crate::{
    error::Error,
    host::Host,
    line::JobId,
    retry::Attempts,
    shard::{Running, Shard, Start, Taken},
    telemetry::Outcome,
    user_code::{catch_panic, dispose, limited},
};

/// The channel is not tokio's, which takes part in tokio's cooperative budget: a `join_all` of a
/// hundred thousand would take minutes.
struct Task<F, T> {
    job: F,
    result: oneshot::Sender<Result<T, Error>>,
}

impl<F, T> Start for Task<F, T>
where
    F: Future<Output = Result<T, Error>> + Send + 'static,
    T: Send + 'static,
{
    fn start(self: Box<Self>, mut running: Running) -> Result<Option<AbortHandle>, Running> {
        let Task { job, result } = *self;
        let (job, handle) = abortable(catch_panic(job));
        let host = running.shard.host.clone();
        host.spawn(Box::pin(async move {
            let outcome = running.run(None, pin!(Some(job))).await.and_then(|result| result);
            running.ended(outcome.as_ref().map_or_else(Outcome::of, |_| Outcome::Ok));
            drop(running);
            // A detached job has no receiver.
            let _ = result.send(outcome);
        }));
        Ok(Some(handle))
    }

    fn refuse(self: Box<Self>, error: Error) {
        let Task { job, result } = *self;
        let _ = result.send(Err(error));
        dispose(job);
    }
}

/// A future of the result of a job.
///
/// Dropping the handle detaches the job, which still runs. [`JobHandle::cancel`] cancels it.
///
/// # Errors
///
/// - [`Cancelled`](crate::ErrorKind::Cancelled): the handle, a group or
///   [`shutdown`](crate::IntervalQueue::shutdown) cancelled the job, or its runtime ended while it
///   ran.
/// - [`Panicked`](crate::ErrorKind::Panicked): the job panicked.
/// - [`State`](crate::ErrorKind::State): the store rejected the job with an error that is not
///   retryable.
/// - [`TooLate`](crate::ErrorKind::TooLate), [`TimedOut`](crate::ErrorKind::TimedOut): see
///   [`JobOptions`](crate::JobOptions).
///
/// # Cancel safety
///
/// Awaiting `&mut handle` is cancel safe.
#[derive(Debug)]
pub struct JobHandle<T> {
    pub(crate) shard: Arc<Shard>,
    pub(crate) target: Target,
    pub(crate) taken: Arc<Taken>,
    pub(crate) result: oneshot::Receiver<Result<T, Error>>,
}

#[derive(Clone, Debug)]
pub(crate) enum Target {
    Job(JobId),
    Attempts(Arc<Attempts>),
}

impl<T> JobHandle<T> {
    /// The job's ticket, once it is taken: at once if the shard has no other work, otherwise with
    /// its next command, see [`Builder::linger`](crate::Builder::linger). May be called repeatedly.
    ///
    /// If an older job of the shard is cancelled or starts alone, the job starts with an earlier
    /// ticket. [`Ticket::NONE`]: the job started alone without one, see
    /// [`WhenStateIsLost`](crate::WhenStateIsLost). With retries, this is the first attempt's
    /// ticket.
    ///
    /// # Errors
    ///
    /// The handle's error, for a job that gets no ticket.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn ticket(&self) -> Result<Ticket, Error> {
        self.shard.adopt();
        self.taken.wait().await
    }

    /// The maximum number of tickets ahead of the job, as last seen by this shard. `None`: the job
    /// has started or was cancelled. Takes time proportional to the shard's jobs ahead of it.
    pub fn position(&self) -> Option<u64> {
        let line = self.shard.line();
        line.ticket_of(self.job()).map(|ticket| line.connection.memory.ahead_of(ticket))
    }

    /// The estimated delay until the start, if all earlier tickets are used, as last seen by this
    /// shard. `None`: the job has started or was cancelled, or the queue is paused.
    pub fn estimated_start(&self) -> Option<Duration> {
        let now = self.shard.host.now();
        let start = self.shard.line().expected_start(self.job(), now)?;
        Some(start.saturating_duration_since(now))
    }

    /// Changes the [priority](crate::JobOptions::priority). Returns false if the job has started,
    /// was cancelled, or waits for another attempt, which keeps the original priority.
    pub fn set_priority(&self, priority: i32) -> bool {
        self.shard.line().backlog.set_priority(self.job(), priority)
    }

    /// Cancels the job unless it has started, and its retries. Returns true if it will not run
    /// (again).
    pub fn cancel(&self) -> bool {
        match &self.target {
            Target::Job(id) => self.shard.withdraw(*id).is_some(),
            Target::Attempts(attempts) => attempts.cancel(&self.shard),
        }
    }

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

pub(crate) fn task<T: Send + 'static>(
    host: &Arc<dyn Host>,
    limit: Option<Duration>,
    job: impl Future<Output = T> + Send + 'static,
) -> (Box<dyn Start>, oneshot::Receiver<Result<T, Error>>) {
    let (sender, result) = oneshot::channel();
    let start: Box<dyn Start> = match limit {
        None => Box::new(Task { job: job.map(Ok), result: sender }),
        // A job without a limit is smaller.
        Some(_) => Box::new(Task { job: limited(host.clone(), limit, job), result: sender }),
    };
    (start, result)
}
