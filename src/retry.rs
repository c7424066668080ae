//! Jobs that are tried again: each attempt takes a ticket and a slot of its own.

use std::{
    future::Future,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use futures::{channel::oneshot, future::abortable};
use interval_queue_contract::InvalidInput;
use tokio::sync::Notify;

use crate::{
    JobGroup,
    error::{Error, ErrorKind},
    host::timeout,
    line::JobId,
    shard::{Accepted, Entry, Place, Running, Shard, Terms},
    telemetry::Outcome,
    turn,
    until::until,
    user_code::{caught, dispose, limited},
};

/// How often and how fast a failed job is tried again: exponential backoff with jitter, then a new ticket at
/// the back of the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Retry {
    times: usize,
    first: Duration,
    longest: Duration,
}

impl Retry {
    /// Tries again at most `times` times after the first attempt. Zero: never.
    pub const fn times(times: usize) -> Self {
        Self { times, first: Duration::from_millis(100), longest: Duration::from_secs(60) }
    }

    /// The delay before the first retry; it doubles with each. Default 100 ms. Jitter adds up to as much
    /// again.
    pub const fn first_delay(mut self, delay: Duration) -> Self {
        self.first = delay;
        self
    }

    /// The longest delay before jitter. Default 60 s.
    pub const fn longest_delay(mut self, delay: Duration) -> Self {
        self.longest = delay;
        self
    }

    pub(crate) fn check(&self) -> Result<(), InvalidInput> {
        if self.first > self.longest {
            return Err(InvalidInput::new(format!(
                "the first delay of {:?} is longer than the longest, {:?}",
                self.first, self.longest
            )));
        }
        Ok(())
    }

    fn delays(&self, seed: u64) -> ExponentialBackoff {
        ExponentialBuilder::new()
            .with_max_times(self.times)
            .with_min_delay(self.first)
            .with_max_delay(self.longest)
            .with_jitter()
            .with_jitter_seed(seed)
            .build()
    }
}

/// Where a job that may be tried several times stands.
#[derive(Debug, Default)]
pub(crate) struct Attempts {
    current: AtomicU64,
    cancelled: AtomicBool,
    /// Whether no attempt comes or runs any more that may still succeed.
    ended: AtomicBool,
    woken: Notify,
}

impl Attempts {
    pub(crate) fn new(first: JobId) -> Self {
        Self { current: AtomicU64::new(first), ..Self::default() }
    }

    pub(crate) fn current(&self) -> JobId {
        self.current.load(Ordering::Acquire)
    }

    /// True unless an attempt runs that may still succeed, or the job has ended.
    pub(crate) fn cancel(&self, shard: &Arc<Shard>) -> bool {
        let (withdrawn, running) = {
            // None starts or ends meanwhile.
            let mut line = shard.line();
            if self.ended.load(Ordering::Acquire) {
                return false;
            }
            self.cancelled.store(true, Ordering::Release);
            let current = self.current();
            (line.withdraw(current), line.running.contains_key(&current))
        };
        self.woken.notify_one();
        if let Some(job) = withdrawn {
            shard.wake();
            dispose(job);
        }
        !running
    }

    fn is_cancelled(&self, shard: &Shard) -> bool {
        self.cancelled.load(Ordering::Acquire) || shard.line().shut_down
    }
}

/// Counts a job between two attempts, so that the shard is not taken for idle.
struct BackingOff(Arc<Shard>);

impl Drop for BackingOff {
    fn drop(&mut self) {
        self.0.line().backing_off -= 1;
        self.0.settled.notify_waiters();
        self.0.wake();
    }
}

/// Says that a job has ended, however that comes.
struct Ending(Arc<Attempts>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.ended.store(true, Ordering::Release);
    }
}

/// How each attempt is made.
pub(crate) struct Plan {
    pub(crate) policy: Retry,
    pub(crate) terms: Terms,
    /// How long an attempt may run.
    pub(crate) limit: Option<Duration>,
}

/// Runs the attempts to the result that the handle gives.
pub(crate) async fn run<F, Fut, T, E>(
    place: Place,
    mut turn: oneshot::Receiver<Result<Running, Error>>,
    attempts: Arc<Attempts>,
    plan: Plan,
    mut make: F,
) -> Result<Result<T, E>, Error>
where
    F: FnMut() -> Fut + Send,
    Fut: Future<Output = Result<T, E>> + Send,
    T: Send,
    E: Send,
{
    let _ending = Ending(attempts.clone());
    let shard = place.shard.clone();
    let mut place = place;
    let mut delays = plan.policy.delays(shard.host.random());
    let mut number = 0;
    let mut last_error = None;
    loop {
        number += 1;
        let mut running = match turn.await.unwrap_or_else(|_| Err(Error::cancelled())) {
            Ok(running) => running,
            Err(error) if error.kind() == ErrorKind::Cancelled => return Err(error),
            Err(error) => return last_error.unwrap_or(Err(error)),
        };
        place.disarm();
        let attempt = limited(shard.host.clone(), plan.limit, async { make().await });
        let (attempt, handle) = abortable(caught(attempt));
        running.abort_with(handle);
        let outcome = running.run(Some(number), pin!(Some(attempt))).await;
        running.ended(match &outcome {
            Ok(Ok(Err(_))) => Outcome::Failed,
            Ok(Ok(Ok(_))) => Outcome::Ok,
            Ok(Err(error)) | Err(error) => Outcome::of(error),
        });
        let delay = match &outcome {
            Ok(Ok(Err(_)) | Err(_)) => delays.next(),
            Ok(Ok(Ok(_))) | Err(_) => None,
        };
        if delay.is_none() {
            // Said while it still counts as running, which nobody can cancel either.
            attempts.ended.store(true, Ordering::Release);
        }
        shard.line().backing_off += 1;
        let backing_off = BackingOff(shard.clone());
        drop(running);
        // What the handle gives if there is no further attempt.
        let failed = match outcome? {
            Ok(Ok(value)) => return Ok(Ok(value)),
            Ok(Err(error)) => Ok(Err(error)),
            Err(timed_out) => Err(timed_out),
        };
        let Some(delay) = delay else {
            return failed;
        };
        tokio::select! {
            biased;
            () = until(&shard.ended, || attempts.is_cancelled(&shard)) => {}
            () = attempts.woken.notified() => {}
            () = plan.terms.cancelled() => {}
            _ = timeout(&shard.host, delay, std::future::pending::<()>()) => {}
        }
        if attempts.is_cancelled(&shard) || plan.terms.group.as_ref().is_some_and(JobGroup::is_cancelled) {
            return failed;
        }
        let (start, next_turn) = turn::handover();
        let next = shard.enqueue(&plan.terms, start, Entry::Again).await;
        let Ok(Accepted { place: next_place, .. }) = next else { return failed };
        attempts.current.store(next_place.id, Ordering::Release);
        if attempts.is_cancelled(&shard) {
            return failed;
        }
        (place, turn, last_error) = (next_place, next_turn, Some(failed));
        drop(backing_off);
    }
}
