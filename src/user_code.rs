//! Runs and drops user code where its panics and blocking do no harm.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures::FutureExt;
use tokio::runtime::Handle;

use crate::{
    error::Error,
    host::{Host, timeout},
};

pub(crate) async fn catch_panic<T>(job: impl Future<Output = T>) -> Result<T, Error> {
    // `map` drops the future on completion, so that a panic of its destructor is caught, too.
    AssertUnwindSafe(job.map(std::convert::identity)).catch_unwind().await.map_err(Error::panicked)
}

/// In a separate task, if there is a runtime: a destructor may panic or block.
pub(crate) fn dispose(jobs: impl Send + 'static) {
    match Handle::try_current() {
        Ok(runtime) => drop(runtime.spawn(async move { drop(jobs) })),
        Err(_) => drop(jobs),
    }
}

/// An error if the job exceeds the limit. `None`: no limit.
pub(crate) async fn limited<T>(
    host: Arc<dyn Host>,
    limit: Option<Duration>,
    job: impl Future<Output = T>,
) -> Result<T, Error> {
    let Some(limit) = limit else { return Ok(job.await) };
    timeout(&host, limit, job).await.ok_or_else(|| Error::ran_too_long(limit))
}
