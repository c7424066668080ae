//! Jobs with retries: each attempt takes a ticket and a slot of its own.

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
    shard::{Accepted, Entry, Running, Shard, Terms, WithdrawGuard},
    telemetry::Outcome,
    turn,
    until::until,
    user_code::{catch_panic, dispose, limited},
};

/// How often and how fast a failed job is retried: exponential backoff with jitter, then a new
/// ticket at the back of the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Retry {
    times: usize,
    first: Duration,
    longest: Duration,
}

impl Retry {
    /// At most this many retries after the first attempt. Zero: none.
    pub const fn times(times: usize) -> Self {
        Self { times, first: Duration::from_millis(100), longest: Duration::from_secs(60) }
    }

    /// The delay before the first retry; it doubles with each retry. Default: 100 ms. Jitter adds
    /// up to as much again.
    pub const fn first_delay(mut self, delay: Duration) -> Self {
        self.first = delay;
        self
    }

    /// The longest delay before jitter. Default: 60 s.
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

#[derive(Debug, Default)]
pub(crate) struct Attempts {
    current: AtomicU64,
    cancelled: AtomicBool,
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

    /// False: the job has ended, or an attempt that may still succeed runs.
    pub(crate) fn cancel(&self, shard: &Arc<Shard>) -> bool {
        let (withdrawn, running) = {
            // No attempt starts or ends while the line is locked.
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

/// So that the shard does not count as idle between two attempts.
struct BackingOff(Arc<Shard>);

impl Drop for BackingOff {
    fn drop(&mut self) {
        self.0.line().backing_off -= 1;
        self.0.idle.notify_waiters();
        self.0.wake();
    }
}

/// Marks the job as ended, also if its future is dropped.
struct Ending(Arc<Attempts>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.ended.store(true, Ordering::Release);
    }
}

pub(crate) struct Plan {
    pub(crate) policy: Retry,
    pub(crate) terms: Terms,
    pub(crate) limit: Option<Duration>,
}

pub(crate) async fn run<F, Fut, T, E>(
    guard: WithdrawGuard,
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
    let shard = guard.shard.clone();
    let mut guard = guard;
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
        guard.disarm();
        let attempt = limited(shard.host.clone(), plan.limit, async { make().await });
        let (attempt, handle) = abortable(catch_panic(attempt));
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
            // While the attempt counts as running, so that a concurrent cancel returns false.
            attempts.ended.store(true, Ordering::Release);
        }
        shard.line().backing_off += 1;
        let backing_off = BackingOff(shard.clone());
        drop(running);
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
        let Ok(Accepted { guard: next_guard, .. }) = next else { return failed };
        attempts.current.store(next_guard.id, Ordering::Release);
        if attempts.is_cancelled(&shard) {
            return failed;
        }
        (guard, turn, last_error) = (next_guard, next_turn, Some(failed));
        drop(backing_off);
    }
}
