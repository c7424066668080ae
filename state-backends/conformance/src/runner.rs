//! Runs checks and says which failed.

use std::{any::Any, future::Future, pin::Pin, time::Duration};

use crate::{CHECKS, Handles};

/// A check that has not ended by then never will.
const PATIENCE: Duration = Duration::from_secs(60);

type Running = Pin<Box<dyn Future<Output = ()> + Send>>;

/// One thing that is expected of every state backend.
#[derive(Clone, Copy, Debug)]
pub struct Check {
    name: &'static str,
    start: fn(Handles) -> Running,
}

impl Check {
    pub(crate) const fn new(name: &'static str, start: fn(Handles) -> Running) -> Self {
        Self { name, start }
    }

    /// What is expected, in words: the name of a function in [`checks`](crate::checks).
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Runs the check on two handles on one state. Call it in a tokio runtime; a multi-threaded one finds
    /// more.
    ///
    /// # Errors
    ///
    /// The state does not do what is expected, or was not done within a minute.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future lets the check run on in the background.
    pub async fn run(&self, handles: Handles) -> Result<(), Failure> {
        watched(self.name, PATIENCE, (self.start)(handles)).await
    }
}

/// Runs a check until it has ended, at most so long. For the suites of interval-queue alone.
#[doc(hidden)]
#[allow(clippy::missing_errors_doc, reason = "as `Check::run`")]
pub async fn watched(
    name: &'static str,
    patience: Duration,
    check: impl Future<Output = ()> + Send + 'static,
) -> Result<(), Failure> {
    let mut check = tokio::spawn(check);
    let message = match tokio::time::timeout(patience, &mut check).await {
        Ok(Ok(())) => return Ok(()),
        Ok(Err(error)) => {
            error.try_into_panic().map_or_else(|error| error.to_string(), |panic| said(&*panic))
        }
        Err(_) => {
            check.abort();
            format!("it was not done after {patience:?}")
        }
    };
    Err(Failure { check: name, message })
}

/// Runs every check, one after the other, each on handles of its own. Call it in a tokio runtime.
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
        failures.extend(check.run(make().await).await.err());
    }
    Failures::of(failures, CHECKS.len())
}

/// Why a check failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{check}: {message}")]
#[non_exhaustive]
pub struct Failure {
    /// The name of the check.
    pub check: &'static str,
    /// What was found instead.
    pub message: String,
}

/// The checks that failed, at least one, in the order of the suite.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} of {} checks failed: {}", self.failed.len(), self.checks, self.names().join(", "))]
pub struct Failures {
    failed: Vec<Failure>,
    checks: usize,
}

impl Failures {
    /// Of so many checks these have failed. For the suites of interval-queue alone.
    #[doc(hidden)]
    #[allow(clippy::missing_errors_doc, reason = "an error is what it makes")]
    pub fn of(failed: Vec<Failure>, checks: usize) -> Result<(), Self> {
        if failed.is_empty() { Ok(()) } else { Err(Self { failed, checks }) }
    }

    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = &Failure> {
        self.failed.iter()
    }

    /// The names of the checks.
    pub fn names(&self) -> Vec<&'static str> {
        self.iter().map(|failure| failure.check).collect()
    }
}

/// The body of a test that [`suite!`](crate::suite) writes. It is not generic: the checks are compiled here, once, and not
/// again in the tests of each store.
#[allow(clippy::missing_panics_doc, reason = "a test fails by panicking")]
pub fn test(name: &str, make: Pin<Box<dyn Future<Output = Handles>>>) {
    match CHECKS.iter().find(|check| check.name == name) {
        Some(check) => test_within(PATIENCE, Box::pin(async { (check.start)(make.await).await })),
        None => panic!("the suite has no check {name}"),
    }
}

/// Runs the body of a test on a runtime of its own, up to `patience`. For the suites of interval-queue alone.
#[doc(hidden)]
#[allow(clippy::missing_panics_doc, reason = "a test fails by panicking")]
pub fn test_within(patience: Duration, check: Pin<Box<dyn Future<Output = ()>>>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build();
    match runtime {
        Ok(runtime) => runtime.block_on(async {
            let done = tokio::time::timeout(patience, check).await.is_ok();
            assert!(done, "it was not done after {patience:?}");
        }),
        Err(error) => panic!("no tokio runtime: {error}"),
    }
}

fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("it panicked").to_owned()
}
