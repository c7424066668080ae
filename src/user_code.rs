//! What belongs to users, run and dropped where it can do no harm.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures::FutureExt;
use tokio::runtime::Handle;

use crate::{
    error::Error,
    host::{Host, timeout},
};

/// The future with a panic as its error.
pub(crate) async fn caught<T>(job: impl Future<Output = T>) -> Result<T, Error> {
    // `map` drops the future as soon as it is done, so that a panic of its destructor is caught, too.
    AssertUnwindSafe(job.map(std::convert::identity)).catch_unwind().await.map_err(Error::panicked)
}

/// Drops what belongs to a user where it can do no harm.
pub(crate) fn dispose(jobs: impl Send + 'static) {
    match Handle::try_current() {
        Ok(runtime) => drop(runtime.spawn(async move { drop(jobs) })),
        Err(_) => drop(jobs),
    }
}

/// The result of a job, or the error that it ran for too long, if there is a limit.
pub(crate) async fn limited<T>(
    host: Arc<dyn Host>,
    limit: Option<Duration>,
    job: impl Future<Output = T>,
) -> Result<T, Error> {
    let Some(limit) = limit else { return Ok(job.await) };
    timeout(&host, limit, job).await.ok_or_else(|| Error::ran_too_long(limit))
}
