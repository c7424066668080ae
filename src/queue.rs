//! The handle that applications hold.

use std::{future::Future, pin::pin, sync::Arc, time::Duration};

use futures::{FutureExt, channel::oneshot, future::BoxFuture};
use interval_queue_contract::{InvalidInput, QueueName, ShardId, Ticket};

use crate::{
    JobHandle, JobOptions, Retry, Turn,
    error::Error,
    job::{self, Target},
    retry::{self, Attempts, Plan},
    shard::{Entry, Placed, Shard, Terms},
    telemetry::Scope,
    turn,
};

/// A shard of a queue: adds jobs that start at the one pace that all shards of that name share.
///
/// Cloning gives another handle to the same shard. Jobs that were accepted run also when every handle is
/// dropped, as long as the runtime lives.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
/// use interval_queue::IntervalQueue;
///
/// let queue = IntervalQueue::builder("mail").interval(Duration::from_millis(100)).connect("memory:").await?;
/// let job = queue.add(async { "sent" }).await?; // has its ticket now
/// assert_eq!(job.await?, "sent");               // has run, at its slot
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct IntervalQueue {
    pub(crate) shard: Arc<Shard>,
}

impl IntervalQueue {
    /// The name of the queue.
    pub fn name(&self) -> &QueueName {
        &self.shard.queue
    }

    /// The id of this shard: random, new with every one that is opened.
    pub fn shard_id(&self) -> ShardId {
        self.shard.line().identity.shard.clone()
    }

    /// The interval in force, as far as this shard knows.
    pub fn interval(&self) -> Duration {
        self.shard.line().contact.memory.interval.to_duration()
    }

    /// How many jobs of all shards may run at once, as far as this shard knows. None: any number.
    pub fn max_running(&self) -> Option<u32> {
        self.shard.line().contact.memory.max_running
    }

    /// Adds a job. Returns once it has its ticket; the job starts at its slot, as a task of its own.
    ///
    /// On a shard with jobs waiting that can take up to 100 ms, see
    /// [`Builder::linger`](crate::Builder::linger): add many jobs side by side (`join_all`), or set no linger.
    ///
    /// While the state is unreachable this waits, as the jobs do. A job that starts alone then, because the
    /// queue was opened [so](crate::WhenStateIsLost), has no ticket: this returns when it starts.
    ///
    /// # Errors
    ///
    /// [`Closed`](crate::ErrorKind::Closed), or [`State`](crate::ErrorKind::State) for a failure that will
    /// not pass by itself. The job is dropped then.
    ///
    /// # Panics
    ///
    /// Never; a panic in the job is the error of its handle.
    ///
    /// # Cancel safety
    ///
    /// Dropped before it returned, the job is withdrawn and its place given up.
    pub async fn add<F>(&self, job: F) -> Result<JobHandle<F::Output>, Error>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        self.add_with(JobOptions::new(), job).await
    }

    /// As [`add`](Self::add), with options.
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add); [`Invalid`](crate::ErrorKind::Invalid) for options that cannot be used;
    /// [`TooLate`](crate::ErrorKind::TooLate) and [`Cancelled`](crate::ErrorKind::Cancelled) as
    /// [`start_within`](JobOptions::start_within) and [`JobGroup::cancel`](crate::JobGroup::cancel) say.
    pub async fn add_with<F>(&self, options: JobOptions, job: F) -> Result<JobHandle<F::Output>, Error>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        self.add_one(options, job, Entry::New).await
    }

    /// As [`add`](Self::add), but never waits for room in a [bounded line](crate::Builder::max_waiting).
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add), and [`Full`](crate::ErrorKind::Full).
    pub async fn try_add<F>(&self, job: F) -> Result<JobHandle<F::Output>, Error>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        self.try_add_with(JobOptions::new(), job).await
    }

    /// As [`try_add`](Self::try_add), with options.
    ///
    /// # Errors
    ///
    /// As [`add_with`](Self::add_with), and [`Full`](crate::ErrorKind::Full).
    pub async fn try_add_with<F>(&self, options: JobOptions, job: F) -> Result<JobHandle<F::Output>, Error>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        self.add_one(options, job, Entry::IfRoom).await
    }

    async fn add_one<F>(
        &self,
        options: JobOptions,
        job: F,
        entry: Entry,
    ) -> Result<JobHandle<F::Output>, Error>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        let terms = self.terms(&options)?;
        let (start, result) = job::task(&self.shard.host, options.timeout, job);
        let (place, ticket) = self.shard.enqueue(terms, start, entry).await?;
        let target = Target::Job(place.disarm());
        Ok(JobHandle { shard: self.shard.clone(), target, ticket, result })
    }

    /// Adds many jobs: they take their tickets together, in one round trip up to a million of them, and start
    /// in this order. All are added, or none.
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add), and [`Invalid`](crate::ErrorKind::Invalid) for more jobs than
    /// [may wait](crate::Builder::max_waiting).
    ///
    /// # Cancel safety
    ///
    /// Dropped before it returned, all of them are withdrawn but those that have started already.
    pub async fn add_all<F>(
        &self,
        jobs: impl IntoIterator<Item = F>,
    ) -> Result<Vec<JobHandle<F::Output>>, Error>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        self.add_all_with(JobOptions::new(), jobs).await
    }

    /// As [`add_all`](Self::add_all), with the options for each of them.
    ///
    /// # Errors
    ///
    /// As [`add_with`](Self::add_with) and [`add_all`](Self::add_all).
    pub async fn add_all_with<F>(
        &self,
        options: JobOptions,
        jobs: impl IntoIterator<Item = F>,
    ) -> Result<Vec<JobHandle<F::Output>>, Error>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        let terms = self.terms(&options)?;
        let tasks = jobs.into_iter().map(|job| job::task(&self.shard.host, options.timeout, job));
        let (starts, results): (Vec<_>, Vec<_>) = tasks.unzip();
        let placed = self.shard.enqueue_all(terms, starts, Entry::New).await?;
        let handle = |(Placed { place, ticket }, mut result): (Placed, oneshot::Receiver<_>)| {
            let ticket = ticket.unwrap_or_else(|error| {
                let (sender, refused) = oneshot::channel();
                // The receiver is right here.
                let _ = sender.send(Err(error));
                result = refused;
                Ticket::NONE
            });
            let target = Target::Job(place.disarm());
            JobHandle { shard: self.shard.clone(), target, ticket, result }
        };
        Ok(placed.into_iter().zip(results).map(handle).collect())
    }

    /// Adds a job that is tried again when it fails: after a delay it takes a new ticket at the back of the
    /// queue. The handle gives the first success or the last error. A panic is not tried again.
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add), and [`Invalid`](crate::ErrorKind::Invalid) for a policy that cannot be used.
    ///
    /// # Cancel safety
    ///
    /// As [`add`](Self::add).
    pub async fn add_retrying<F, Fut, T, E>(
        &self,
        policy: Retry,
        make: F,
    ) -> Result<JobHandle<Result<T, E>>, Error>
    where
        F: FnMut() -> Fut + Send + 'static,
        Fut: Future<Output = Result<T, E>> + Send + 'static,
        T: Send + 'static,
        E: Send + 'static,
    {
        self.add_retrying_with(JobOptions::new(), policy, make).await
    }

    /// As [`add_retrying`](Self::add_retrying), with options for each attempt. One that runs into its
    /// [`timeout`](JobOptions::timeout) has failed; if it was the last, the handle gives that error.
    ///
    /// # Errors
    ///
    /// As [`add_with`](Self::add_with) and [`add_retrying`](Self::add_retrying).
    pub async fn add_retrying_with<F, Fut, T, E>(
        &self,
        options: JobOptions,
        policy: Retry,
        make: F,
    ) -> Result<JobHandle<Result<T, E>>, Error>
    where
        F: FnMut() -> Fut + Send + 'static,
        Fut: Future<Output = Result<T, E>> + Send + 'static,
        T: Send + 'static,
        E: Send + 'static,
    {
        policy.check()?;
        let terms = self.terms(&options)?;
        let (start, turn) = turn::handover();
        let (place, ticket) = self.shard.enqueue(terms.clone(), start, Entry::New).await?;
        let attempts = Arc::new(Attempts::new(place.id));
        let (sender, result) = oneshot::channel();
        let plan = Plan { policy, terms: terms.unhurried(), limit: options.timeout };
        let run = retry::run(place, turn, attempts.clone(), plan, make);
        // Every attempt belongs to the span of this call.
        let called_in = Scope::current();
        self.shard.host.spawn(Box::pin(async move {
            let result = called_in.run_to_end(pin!(Some(run))).await;
            drop(called_in);
            // A detached job has nobody who wants its result.
            let _ = sender.send(result);
        }));
        Ok(JobHandle { shard: self.shard.clone(), target: Target::Attempts(attempts), ticket, result })
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
    /// Dropping the future of a call that has no ticket yet withdraws it; later the call runs detached.
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

    /// Waits for one's slot, to run something in place. While the turn lives it counts as a running job.
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add), and [`Cancelled`](crate::ErrorKind::Cancelled) after
    /// [`shutdown`](Self::shutdown).
    ///
    /// # Cancel safety
    ///
    /// Dropped before it returned, the place is given up.
    pub async fn turn(&self) -> Result<Turn, Error> {
        self.turn_with(JobOptions::new()).await
    }

    /// As [`turn`](Self::turn), with options.
    ///
    /// # Errors
    ///
    /// As [`turn`](Self::turn) and [`add_with`](Self::add_with), and [`Invalid`](crate::ErrorKind::Invalid)
    /// for a [`timeout`](JobOptions::timeout): what runs in place cannot be ended from here.
    pub async fn turn_with(&self, options: JobOptions) -> Result<Turn, Error> {
        options.check_turn()?;
        let (start, place) = turn::handover();
        let (waiting, _) = self.shard.enqueue(self.terms(&options)?, start, Entry::New).await?;
        let mut running = place.await.unwrap_or_else(|_| Err(Error::cancelled()))?;
        running.begin_turn();
        waiting.disarm();
        Ok(Turn(running))
    }

    pub(crate) fn terms(&self, options: &JobOptions) -> Result<Terms, InvalidInput> {
        options.terms(self.shard.line().contact.memory.interval, self.shard.host.now())
    }

    /// How many jobs of this shard wait for their start.
    pub fn waiting(&self) -> usize {
        self.shard.line().backlog.len()
    }

    /// How many jobs of this shard run.
    pub fn running(&self) -> usize {
        self.shard.line().running.len()
    }
}
