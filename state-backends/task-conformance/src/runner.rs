//! Runs checks and says which failed.

use std::{any::Any, future::Future, pin::Pin, time::Duration};

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
    /// The store does not do what is expected, or was not done within a minute.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future lets the check run on in the background.
    pub async fn run(&self, handles: Handles) -> Result<(), Failure> {
        let mut check = tokio::spawn((self.start)(handles));
        let message = match tokio::time::timeout(PATIENCE, &mut check).await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(error)) => {
                error.try_into_panic().map_or_else(|error| error.to_string(), |panic| said(&*panic))
            }
            Err(_) => {
                check.abort();
                format!("it was not done after {PATIENCE:?}")
            }
        };
        Err(Failure { check: self.name, message })
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
    if failures.is_empty() {
        return Ok(());
    }
    Err(Failures(failures))
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

/// The checks that failed, at least one, in the order of [`CHECKS`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} of {} checks failed: {}", self.0.len(), CHECKS.len(), self.names().join(", "))]
pub struct Failures(Vec<Failure>);

impl Failures {
    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = &Failure> {
        self.0.iter()
    }

    /// The names of the checks.
    pub fn names(&self) -> Vec<&'static str> {
        self.iter().map(|failure| failure.check).collect()
    }
}

/// The body of a test that [`task_conformance_tests!`](crate::task_conformance_tests) writes.
#[allow(clippy::missing_panics_doc, reason = "a test fails by panicking")]
pub fn test(check: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build();
    match runtime {
        Ok(runtime) => runtime.block_on(async {
            let done = tokio::time::timeout(PATIENCE, check).await.is_ok();
            assert!(done, "it was not done after {PATIENCE:?}");
        }),
        Err(error) => panic!("no tokio runtime: {error}"),
    }
}

fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("it panicked").to_owned()
}
