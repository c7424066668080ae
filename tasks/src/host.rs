//! The runtime of workers and calls: clock, timers, tasks and random numbers. Only this module
//! reads a clock.

use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use interval_queue::Host;

/// Its clock is virtual while a test has paused it.
#[derive(Debug)]
pub(crate) struct Tokio;

impl Host for Tokio {
    #[allow(clippy::disallowed_methods, reason = "this is the clock module")]
    fn now(&self) -> Instant {
        tokio::time::Instant::now().into_std()
    }

    fn sleep_until(&self, deadline: Instant) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep_until(deadline.into()))
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        tokio::spawn(task);
    }

    fn spawn_blocking(&self, work: Box<dyn FnOnce() + Send>) {
        tokio::task::spawn_blocking(work);
    }

    fn random(&self) -> u64 {
        rand::random()
    }
}

/// `None`: forever.
pub(crate) async fn sleep_until(host: &dyn Host, instant: Option<Instant>) {
    match instant {
        Some(instant) => host.sleep_until(instant).await,
        None => std::future::pending().await,
    }
}

pub(crate) async fn sleep(host: &dyn Host, time: Duration) {
    sleep_until(host, host.now().checked_add(time)).await;
}

/// `None`: `limit` has passed.
pub(crate) async fn timeout<T>(host: &dyn Host, limit: Duration, work: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        done = work => Some(done),
        () = sleep(host, limit) => None,
    }
}
