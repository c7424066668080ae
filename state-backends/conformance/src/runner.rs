//! Runs checks and reports failures.

use std::{any::Any, future::Future, pin::Pin, time::Duration};

use crate::{CHECKS, Handles};

/// A check that runs longer hangs.
const CHECK_TIMEOUT: Duration = Duration::from_secs(60);

type Running = Pin<Box<dyn Future<Output = ()> + Send>>;

/// One requirement of every store.
#[derive(Clone, Copy, Debug)]
pub struct Check {
    name: &'static str,
    start: fn(Handles) -> Running,
}

impl Check {
    pub(crate) const fn new(name: &'static str, start: fn(Handles) -> Running) -> Self {
        Self { name, start }
    }

    /// The name of the function in [`checks`](crate::checks).
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Runs the check on two handles of one store, within a tokio runtime, best a multi-threaded
    /// one.
    ///
    /// # Errors
    ///
    /// The store violates the requirement, or the check took over a minute.
    ///
    /// # Cancel safety
    ///
    /// A dropped future leaves the check running in the background.
    pub async fn run(&self, handles: Handles) -> Result<(), Failure> {
        watched(self.name, CHECK_TIMEOUT, (self.start)(handles)).await
    }
}

/// Runs a check for at most `time_limit`. For this workspace's suites.
#[doc(hidden)]
#[allow(clippy::missing_errors_doc, reason = "as `Check::run`")]
pub async fn watched(
    name: &'static str,
    time_limit: Duration,
    check: impl Future<Output = ()> + Send + 'static,
) -> Result<(), Failure> {
    let mut check = tokio::spawn(check);
    let message = match tokio::time::timeout(time_limit, &mut check).await {
        Ok(Ok(())) => return Ok(()),
        Ok(Err(error)) => {
            error.try_into_panic().map_or_else(|error| error.to_string(), |panic| panic_message(&*panic))
        }
        Err(_) => {
            check.abort();
            format!("it was not done after {time_limit:?}")
        }
    };
    Err(Failure { check: name, message })
}

/// Runs all checks in turn, each on new handles, within a tokio runtime.
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
        failures.extend(check.run(make().await).await.err());
    }
    Failures::of(failures, CHECKS.len())
}

/// A failed check and the reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{check}: {message}")]
#[non_exhaustive]
pub struct Failure {
    /// The name of the check.
    pub check: &'static str,
    /// The difference from the requirement.
    pub message: String,
}

/// The failed checks, at least one, in the order of the suite.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} of {} checks failed: {}", self.failed.len(), self.checks, self.names().join(", "))]
pub struct Failures {
    failed: Vec<Failure>,
    checks: usize,
}

impl Failures {
    /// The failures of `checks` checks. For this workspace's suites.
    #[doc(hidden)]
    #[allow(clippy::missing_errors_doc, reason = "an error is what it makes")]
    pub fn of(failed: Vec<Failure>, checks: usize) -> Result<(), Self> {
        if failed.is_empty() { Ok(()) } else { Err(Self { failed, checks }) }
    }

    /// The failures.
    pub fn iter(&self) -> impl Iterator<Item = &Failure> {
        self.failed.iter()
    }

    /// The names of the failed checks.
    pub fn names(&self) -> Vec<&'static str> {
        self.iter().map(|failure| failure.check).collect()
    }
}

/// The body of a test of [`suite!`](crate::suite). Not generic, so that checks are compiled only
/// once.
#[allow(clippy::missing_panics_doc, reason = "a test fails by panicking")]
pub fn test(name: &str, make: Pin<Box<dyn Future<Output = Handles>>>) {
    match CHECKS.iter().find(|check| check.name == name) {
        Some(check) => test_within(CHECK_TIMEOUT, Box::pin(async { (check.start)(make.await).await })),
        None => panic!("the suite has no check {name}"),
    }
}

/// Runs the body of a test on its own runtime for at most `time_limit`. For this workspace's suites.
#[doc(hidden)]
#[allow(clippy::missing_panics_doc, reason = "a test fails by panicking")]
pub fn test_within(time_limit: Duration, check: Pin<Box<dyn Future<Output = ()>>>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build();
    match runtime {
        Ok(runtime) => runtime.block_on(async {
            let done = tokio::time::timeout(time_limit, check).await.is_ok();
            assert!(done, "it was not done after {time_limit:?}");
        }),
        Err(error) => panic!("no tokio runtime: {error}"),
    }
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("it panicked").to_owned()
}
