//! Jobs: how one is started, and the handle that tells of it.

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
    user_code::{caught, dispose, limited},
};

/// A future of the application, started as a task of its own. The channel is not tokio's, which takes part in
/// its cooperative budget: with a hundred thousand in one `join_all` that costs minutes.
struct Task<F, T> {
    job: F,
    result: oneshot::Sender<Result<T, Error>>,
}

impl<F, T> Start for Task<F, T>
where
    F: Future<Output = Result<T, Error>> + Send + 'static,
    T: Send + 'static,
{
    fn start(self: Box<Self>, mut place: Running) -> Result<Option<AbortHandle>, Running> {
        let Task { job, result } = *self;
        let (job, handle) = abortable(caught(job));
        let host = place.shard.host.clone();
        host.spawn(Box::pin(async move {
            let outcome = place.run(None, pin!(Some(job))).await.and_then(|result| result);
            place.ended(outcome.as_ref().map_or_else(Outcome::of, |_| Outcome::Ok));
            drop(place);
            // A detached job has nobody who wants its result.
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
/// Dropping the handle detaches the job: it runs all the same. [`JobHandle::cancel`] gives the place up.
///
/// # Errors
///
/// The future yields [`Cancelled`](crate::ErrorKind::Cancelled) if the job was cancelled, by its handle or by
/// [`shutdown`](crate::IntervalQueue::shutdown), or its runtime ended while it ran;
/// [`Panicked`](crate::ErrorKind::Panicked) if it panicked; [`State`](crate::ErrorKind::State) if the state
/// refused it for a reason that will not pass by itself; [`TooLate`](crate::ErrorKind::TooLate) and
/// [`TimedOut`](crate::ErrorKind::TimedOut) as its [options](crate::JobOptions) say.
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

/// What a handle cancels.
#[derive(Clone, Debug)]
pub(crate) enum Target {
    Job(JobId),
    Attempts(Arc<Attempts>),
}

impl<T> JobHandle<T> {
    /// The ticket that is taken for the job, once it is: at once on a shard without other work, and with its
    /// next command on a busy one, see [`Builder::linger`](crate::Builder::linger). May be asked any number
    /// of times.
    ///
    /// If an older job of this shard is cancelled or starts alone, the job starts with an earlier ticket.
    /// [`Ticket::NONE`] if it started alone before it had one; see
    /// [`WhenStateIsLost`](crate::WhenStateIsLost). Of a job that is tried again it is the first one.
    ///
    /// # Errors
    ///
    /// Those of the handle for a job that gets no ticket.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn ticket(&self) -> Result<Ticket, Error> {
        self.shard.adopt();
        self.taken.wait().await
    }

    /// How many tickets stand before it, at most, as far as this shard knows: some may not be used any more.
    /// None once it has started or was cancelled. Takes time in proportion to the jobs of this shard before
    /// it.
    pub fn position(&self) -> Option<u64> {
        let line = self.shard.line();
        line.ticket_of(self.job()).map(|ticket| line.contact.memory.ahead_of(ticket))
    }

    /// In how long it starts if every ticket before it is used, as far as this shard knows. None once it has
    /// started or was cancelled, or while the queue is paused.
    pub fn estimated_start(&self) -> Option<Duration> {
        let now = self.shard.host.now();
        let start = self.shard.line().expected_start(self.job(), now)?;
        Some(start.saturating_duration_since(now))
    }

    /// Changes the [priority](crate::JobOptions::priority) of the job. False if it has started or was
    /// cancelled, or waits for another attempt, which then has the priority that it was added with.
    pub fn set_priority(&self, priority: i32) -> bool {
        self.shard.line().backlog.set_priority(self.job(), priority)
    }

    /// Cancels the job if it has not started and gives its place up; a job to be retried is not retried any
    /// more. True if it will not run (again).
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

/// What runs the future when the slot comes, for at most so long.
pub(crate) fn task<T: Send + 'static>(
    host: &Arc<dyn Host>,
    limit: Option<Duration>,
    job: impl Future<Output = T> + Send + 'static,
) -> (Box<dyn Start>, oneshot::Receiver<Result<T, Error>>) {
    let (sender, result) = oneshot::channel();
    let start: Box<dyn Start> = match limit {
        None => Box::new(Task { job: job.map(Ok), result: sender }),
        // Apart, since the one without a limit is smaller.
        Some(_) => Box::new(Task { job: limited(host.clone(), limit, job), result: sender }),
    };
    (start, result)
}
