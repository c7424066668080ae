//! What jobs can be added.

use std::{future::Future, sync::Arc};

use futures::{FutureExt, future::BoxFuture};

use crate::{
    IntervalQueue, JobHandle, Retry,
    error::Error,
    job_builder::{InPlace, JobBuilder, Many, Retrying},
};

impl IntervalQueue {
    /// Adds a job, which starts at its slot as a task of its own. Returns as soon as the job is in the line of
    /// this shard: it waits for room in a [bounded line](crate::Builder::max_waiting) and for nothing else.
    /// The handle tells its [ticket](JobHandle::ticket) and its result. Dropped, the handle detaches the job.
    ///
    /// Jobs of one shard start in the order in which they were added, those of several shards in that of
    /// their tickets. While the state is unreachable they wait.
    ///
    /// # Errors
    ///
    /// [`Closed`](crate::ErrorKind::Closed). The job is dropped then. What keeps it from starting later is
    /// the error of its handle: [`State`](crate::ErrorKind::State) for a failure that will not pass by
    /// itself, which [`Builder::on_error`](crate::Builder::on_error) is told, too.
    ///
    /// # Panics
    ///
    /// Never; a panic in the job is the error of its handle.
    ///
    /// # Cancel safety
    ///
    /// Dropped while it waits for room, the job is not added.
    pub async fn add<F>(&self, job: F) -> Result<JobHandle<F::Output>, Error>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        self.job(job).add().await
    }

    /// A job with [options](JobBuilder): `queue.job(…).priority(1).add().await`.
    pub fn job<F>(&self, job: F) -> JobBuilder<F>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        JobBuilder::new(self, job)
    }

    /// Starts a job in a slot that is free now, or says when one would be; see [`JobBuilder::try_now`].
    ///
    /// # Errors
    ///
    /// As [`JobBuilder::try_now`].
    ///
    /// # Cancel safety
    ///
    /// Dropped before it returned, the job does not start.
    pub async fn try_now<F>(&self, job: F) -> Result<JobHandle<F::Output>, Error>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        self.job(job).try_now().await
    }

    /// Adds many jobs, which start in this order: all are added, or none. They take their tickets together,
    /// in one round trip up to a million of them.
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

    /// Many jobs with [options](JobBuilder) for each of them.
    pub fn jobs<I>(&self, jobs: I) -> JobBuilder<Many<I>>
    where
        I: IntoIterator<Item: Future<Output: Send> + Send + 'static>,
    {
        JobBuilder::new(self, Many(jobs))
    }

    /// A job that is tried again when it fails: after a delay it takes a new ticket at the back of the queue.
    /// The handle gives the first success or the last error. A panic is not tried again.
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

    /// A function like `f` whose calls are paced: each waits for its slot, runs, and gives the result of `f`.
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
    /// Dropping the future of a call that waits for room withdraws it; later the call runs detached.
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

    /// Waits for one's slot, to run something in place: `queue.turn().await`, with [options](JobBuilder)
    /// `queue.turn().weight(2).await`. While the turn lives it counts as a running job.
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add) and [its handle](JobHandle), and [`Invalid`](crate::ErrorKind::Invalid) for a
    /// [`timeout`](crate::JobOptions::timeout): what runs in place cannot be ended from here.
    ///
    /// # Cancel safety
    ///
    /// Dropped before it returned, the place is given up.
    pub fn turn(&self) -> JobBuilder<InPlace> {
        JobBuilder::new(self, InPlace(()))
    }
}
