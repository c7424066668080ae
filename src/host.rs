//! The place a shard runs in: its clock, timers, tasks and random numbers. Nothing else in this crate reaches
//! for them.

use std::{
    fmt::Debug,
    sync::{Arc, PoisonError, RwLock},
    time::{Duration, Instant},
};

use futures::future::BoxFuture;
use tokio::runtime::Handle;

use crate::{clock, timer::Timers};

/// What a shard needs of the place it runs in. The default is the tokio runtime in which its queue was
/// opened; a simulation brings one that it can stop, kill and let drift.
pub trait Host: Debug + Send + Sync + 'static {
    /// The clock of this place: monotonic, and not comparable with that of another.
    fn now(&self) -> Instant;

    /// Ends when [`now`](Host::now) has reached `deadline`.
    fn sleep_until(&self, deadline: Instant) -> BoxFuture<'static, ()>;

    /// Runs a task to its end. A place that has ended drops it.
    fn spawn(&self, task: BoxFuture<'static, ()>);

    /// Runs something that may block where it does not keep tasks from running.
    fn spawn_blocking(&self, work: Box<dyn FnOnce() + Send>);

    /// A random number: for ids and jitter, not for secrets.
    fn random(&self) -> u64;

    /// The shard has nothing to do until it is woken: what was kept for its next timer may go.
    fn rest(&self) {}

    /// Moves to the place of the caller after the old one has ended. False if that is not to be had.
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

/// A tokio runtime.
#[derive(Debug)]
pub(crate) struct Tokio {
    runtime: RwLock<Handle>,
    timers: Arc<Timers>,
}

impl Tokio {
    /// The runtime of the caller. Panics outside of one, and in one without its drivers.
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
        // They belong to the reactor of the runtime that has ended.
        self.timers.rest();
        *self.runtime.write().unwrap_or_else(PoisonError::into_inner) = present;
        true
    }
}

/// Ends at an instant, if there is one.
pub(crate) async fn sleep_until(host: &dyn Host, instant: Option<Instant>) {
    match instant {
        Some(instant) => host.sleep_until(instant).await,
        None => std::future::pending().await,
    }
}

/// The result of `work`, or none after `limit`. A limit beyond what the clock can tell is no limit.
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
