//! The calls that add jobs.

use std::{future::Future, sync::Arc};

use futures::{FutureExt, future::BoxFuture};

use crate::{
    IntervalQueue, JobHandle, Retry,
    error::Error,
    job_builder::{InPlace, JobBuilder, Many, Retrying},
};

impl IntervalQueue {
    /// Adds a job, which starts at its slot as a task of its own. Waits only for
    /// [capacity](crate::Builder::max_waiting). The handle returns the [ticket](JobHandle::ticket)
    /// and the result; dropping it detaches the job.
    ///
    /// Jobs of one shard start in the order of adding, jobs of several shards in ticket order.
    /// While the store is unreachable they wait.
    ///
    /// # Errors
    ///
    /// [`Closed`](crate::ErrorKind::Closed); the job is dropped. The handle returns later errors,
    /// such as [`State`](crate::ErrorKind::State) for a store's error that is not retryable, which
    /// [`Builder::on_error`](crate::Builder::on_error) also gets.
    ///
    /// # Panics
    ///
    /// Never; the handle returns a panic of the job as an error.
    ///
    /// # Cancel safety
    ///
    /// If dropped while it waits for capacity, the job is not added.
    pub async fn add<F>(&self, job: F) -> Result<JobHandle<F::Output>, Error>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        self.job(job).add().await
    }

    /// A job to be added with [options](JobBuilder): `queue.job(…).priority(1).add().await`.
    pub fn job<F>(&self, job: F) -> JobBuilder<F>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        JobBuilder::new(self, job)
    }

    /// Starts a job if a slot is free now, or fails with the estimated delay; see
    /// [`JobBuilder::try_now`].
    ///
    /// # Errors
    ///
    /// As [`JobBuilder::try_now`].
    ///
    /// # Cancel safety
    ///
    /// If dropped before it returns, the job does not start.
    pub async fn try_now<F>(&self, job: F) -> Result<JobHandle<F::Output>, Error>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        self.job(job).try_now().await
    }

    /// Adds all of the jobs or none. They start in this order and take their tickets together, up
    /// to a million per round trip.
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add), and [`Invalid`](crate::ErrorKind::Invalid) for more jobs than
    /// [may wait](crate::Builder::max_waiting).
    ///
    /// # Cancel safety
    ///
    /// As [`add`](Self::add).
    pub async fn add_all<F>(
        &self,
        jobs: impl IntoIterator<Item = F>,
    ) -> Result<Vec<JobHandle<F::Output>>, Error>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        self.jobs(jobs).add().await
    }

    /// Jobs to be added together, with the same [options](JobBuilder).
    pub fn jobs<I>(&self, jobs: I) -> JobBuilder<Many<I>>
    where
        I: IntoIterator<Item: Future<Output: Send> + Send + 'static>,
    {
        JobBuilder::new(self, Many(jobs))
    }

    /// A job with retries: after a failure and a delay it takes a new ticket at the back of the
    /// queue. The handle returns the first success or the last error. Panics are not retried.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use std::time::Duration;
    /// # use interval_queue::{IntervalQueue, Retry};
    /// # let queue = IntervalQueue::builder("api").interval(Duration::from_millis(100)).connect("memory:").await?;
    /// # async fn fetch(page: u32) -> Result<u32, String> { Ok(page) }
    /// let page = queue.retrying(Retry::times(3), || fetch(7)).timeout(Duration::from_secs(5)).add().await?;
    /// assert_eq!(page.await?, Ok(7));
    /// # Ok(())
    /// # }
    /// ```
    pub fn retrying<M, Fut, T, E>(&self, policy: Retry, make: M) -> JobBuilder<Retrying<M>>
    where
        M: FnMut() -> Fut + Send + 'static,
        Fut: Future<Output = Result<T, E>> + Send + 'static,
        T: Send + 'static,
        E: Send + 'static,
    {
        JobBuilder::new(self, Retrying { policy, make })
    }

    /// Wraps `f`: each call waits for its slot, runs `f`, and returns its result.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use std::time::Duration;
    /// # use interval_queue::IntervalQueue;
    /// # let queue = IntervalQueue::builder("api").interval(Duration::from_millis(100)).connect("memory:").await?;
    /// let fetch = queue.wrap(|page: u32| async move { format!("page {page}") });
    /// assert_eq!(fetch(7).await?, "page 7");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Cancel safety
    ///
    /// If the future of a call is dropped while it waits for capacity, the call is withdrawn; later
    /// it runs detached.
    pub fn wrap<A, F, Fut, T>(
        &self,
        f: F,
    ) -> impl Fn(A) -> BoxFuture<'static, Result<T, Error>> + use<A, F, Fut, T>
    where
        A: Send + 'static,
        F: Fn(A) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = T> + Send + 'static,
        T: Send + 'static,
    {
        let (queue, f) = (self.clone(), Arc::new(f));
        move |argument| {
            let (queue, f) = (queue.clone(), f.clone());
            async move { queue.add(async move { f(argument).await }).await?.await }.boxed()
        }
    }

    /// Waits for a slot, to run something in place: `queue.turn().await`, or with
    /// [options](JobBuilder) `queue.turn().weight(2).await`. Until the turn is dropped, it counts
    /// as a running job.
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add) and [its handle](JobHandle), and
    /// [`Invalid`](crate::ErrorKind::Invalid) for a [`timeout`](crate::JobOptions::timeout): the
    /// queue cannot abort code that runs in place.
    ///
    /// # Cancel safety
    ///
    /// If dropped before it returns, the ticket is given up.
    pub fn turn(&self) -> JobBuilder<InPlace> {
        JobBuilder::new(self, InPlace(()))
    }
}
