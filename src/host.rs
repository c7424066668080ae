//! [`Host`]: the only source of a shard's clock, timers, tasks and random numbers.

use std::{
    fmt::Debug,
    sync::{Arc, PoisonError, RwLock},
    time::{Duration, Instant},
};

use futures::future::BoxFuture;
use tokio::runtime::Handle;

use crate::{clock, timer::Timers};

/// The environment of a shard. Default: the tokio runtime that opened the queue. A simulation
/// passes a host that it can stop, kill and let drift.
pub trait Host: Debug + Send + Sync + 'static {
    /// The host's clock: monotonic, not comparable with other hosts' clocks.
    fn now(&self) -> Instant;

    /// Completes when [`now`](Host::now) has reached `deadline`.
    fn sleep_until(&self, deadline: Instant) -> BoxFuture<'static, ()>;

    /// Spawns a task. A host that has ended drops it.
    fn spawn(&self, task: BoxFuture<'static, ()>);

    /// Runs `work`, which may block, where it delays no task.
    fn spawn_blocking(&self, work: Box<dyn FnOnce() + Send>);

    /// A random number: for ids and jitter, not for secrets.
    fn random(&self) -> u64;

    /// The shard is idle until woken: resources kept for its next timer can be released.
    fn rest(&self) {}

    /// Moves to the caller's environment after this one has ended. Returns false if that is
    /// impossible.
    fn adopt(&self) -> bool {
        false
    }
}

impl<H: Host + ?Sized> Host for Arc<H> {
    fn now(&self) -> Instant {
        (**self).now()
    }

    fn sleep_until(&self, deadline: Instant) -> BoxFuture<'static, ()> {
        (**self).sleep_until(deadline)
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        (**self).spawn(task);
    }

    fn spawn_blocking(&self, work: Box<dyn FnOnce() + Send>) {
        (**self).spawn_blocking(work);
    }

    fn random(&self) -> u64 {
        (**self).random()
    }

    fn rest(&self) {
        (**self).rest();
    }

    fn adopt(&self) -> bool {
        (**self).adopt()
    }
}

#[derive(Debug)]
pub(crate) struct Tokio {
    runtime: RwLock<Handle>,
    timers: Arc<Timers>,
}

impl Tokio {
    /// Panics outside a runtime, and in a runtime without its drivers.
    pub(crate) fn current() -> Self {
        let here = Self { runtime: RwLock::new(Handle::current()), timers: Arc::default() };
        here.timers.check();
        here
    }

    fn runtime(&self) -> Handle {
        self.runtime.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Host for Tokio {
    fn now(&self) -> Instant {
        clock::now()
    }

    fn sleep_until(&self, deadline: Instant) -> BoxFuture<'static, ()> {
        Box::pin(self.timers.clone().sleep_until(deadline))
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        self.runtime().spawn(task);
    }

    fn spawn_blocking(&self, work: Box<dyn FnOnce() + Send>) {
        self.runtime().spawn_blocking(work);
    }

    fn random(&self) -> u64 {
        rand::random()
    }

    fn rest(&self) {
        self.timers.rest();
    }

    fn adopt(&self) -> bool {
        let Ok(present) = Handle::try_current() else { return false };
        // The timers' reactor belongs to the runtime that has ended.
        self.timers.rest();
        *self.runtime.write().unwrap_or_else(PoisonError::into_inner) = present;
        true
    }
}

/// `None`: never.
pub(crate) async fn sleep_until(host: &dyn Host, instant: Option<Instant>) {
    match instant {
        Some(instant) => host.sleep_until(instant).await,
        None => std::future::pending().await,
    }
}

/// `None`: `limit` passed first. A limit beyond the range of the clock is no limit.
pub(crate) async fn timeout<T>(
    host: &Arc<dyn Host>,
    limit: Duration,
    work: impl Future<Output = T>,
) -> Option<T> {
    let Some(deadline) = host.now().checked_add(limit) else {
        return Some(work.await);
    };
    let deadline = host.sleep_until(deadline);
    tokio::select! {
        biased;
        result = work => Some(result),
        () = deadline => None,
    }
}
