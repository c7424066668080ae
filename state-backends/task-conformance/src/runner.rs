//! Runs checks and says which failed.

use std::{future::Future, pin::Pin, time::Duration};

use interval_queue_conformance::{
    __private::{self, watched},
    Failure, Failures,
};

use crate::{CHECKS, Handles};

/// A check that has not ended by then never will.
const PATIENCE: Duration = Duration::from_secs(600);

type Running = Pin<Box<dyn Future<Output = ()> + Send>>;

/// One thing that is expected of every store of tasks.
#[derive(Clone, Copy, Debug)]
pub struct Check {
    name: &'static str,
    needs_clock: bool,
    start: fn(Handles) -> Running,
}

impl Check {
    pub(crate) const fn new(name: &'static str, needs_clock: bool, start: fn(Handles) -> Running) -> Self {
        Self { name, needs_clock, start }
    }

    /// What is expected, in words: the name of a function in [`checks`](crate::checks).
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Whether it lets time pass, and so needs a clock that it can set.
    pub fn needs_clock(&self) -> bool {
        self.needs_clock
    }

    /// Runs the check on two handles on one store. Call it in a tokio runtime; a multi-threaded one finds
    /// more.
    ///
    /// # Errors
    ///
    /// The store does not do what is expected, or was not done within ten minutes.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future lets the check run on in the background.
    pub async fn run(&self, handles: Handles) -> Result<(), Failure> {
        watched(self.name, PATIENCE, (self.start)(handles)).await
    }
}

/// Runs every check, one after the other, each on handles of its own; without a clock, those that need none. Call it
/// in a tokio runtime.
///
/// # Errors
///
/// Some checks failed; the others ran all the same.
///
/// # Cancel safety
///
/// Dropping the future lets the check that is under way run on in the background; no other is started.
pub async fn run<M: Future<Output = Handles>>(make: impl Fn() -> M) -> Result<(), Failures> {
    let mut failures = Vec::new();
    for check in CHECKS {
        let handles = make().await;
        if handles.clock.is_some() || !check.needs_clock {
            failures.extend(check.run(handles).await.err());
        }
    }
    Failures::of(failures, CHECKS.len())
}

/// The body of a test that [`task_conformance_tests!`](crate::task_conformance_tests) writes. It is not generic: the
/// checks are compiled here, once, and not again in the tests of each store.
#[allow(clippy::missing_panics_doc, reason = "a test fails by panicking")]
pub fn test(name: &str, make: Pin<Box<dyn Future<Output = Handles>>>) {
    match CHECKS.iter().find(|check| check.name == name) {
        Some(check) => __private::test_within(PATIENCE, Box::pin(async { (check.start)(make.await).await })),
        None => panic!("the suite has no check {name}"),
    }
}
