//! Runs checks and reports failures.

use std::{future::Future, pin::Pin, time::Duration};

use interval_queue_conformance::{
    __private::{self, watched},
    Failure, Failures,
};

use crate::{CHECKS, Handles};

/// A check that runs longer hangs.
const CHECK_TIMEOUT: Duration = Duration::from_secs(600);

type Running = Pin<Box<dyn Future<Output = ()> + Send>>;

/// One requirement of every task store.
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

    /// The name of the function in [`checks`](crate::checks).
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Whether the check needs a settable clock.
    pub fn needs_clock(&self) -> bool {
        self.needs_clock
    }

    /// Runs the check on two handles of one store, within a tokio runtime, best a multi-threaded
    /// one.
    ///
    /// # Errors
    ///
    /// The store violates the requirement, or the check took over ten minutes.
    ///
    /// # Cancel safety
    ///
    /// A dropped future leaves the check running in the background.
    pub async fn run(&self, handles: Handles) -> Result<(), Failure> {
        watched(self.name, CHECK_TIMEOUT, (self.start)(handles)).await
    }
}

/// Runs all checks in turn, each on new handles, within a tokio runtime. Without a settable clock
/// omits checks that need one.
///
/// # Errors
///
/// Some checks failed. All were run.
///
/// # Cancel safety
///
/// A dropped future leaves the current check running in the background; no other starts.
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

/// The body of a test of [`task_conformance_tests!`](crate::task_conformance_tests). Not generic,
/// so that checks are compiled only once.
#[allow(clippy::missing_panics_doc, reason = "a test fails by panicking")]
pub fn test(name: &str, make: Pin<Box<dyn Future<Output = Handles>>>) {
    match CHECKS.iter().find(|check| check.name == name) {
        Some(check) => {
            __private::test_within(CHECK_TIMEOUT, Box::pin(async { (check.start)(make.await).await }))
        }
        None => panic!("the suite has no check {name}"),
    }
}
