//! [`JobBuilder`], the only way to give options to a job.

use std::{future::IntoFuture, pin::pin, sync::Arc, time::Duration};

use futures::{FutureExt, channel::oneshot, future::BoxFuture};

use crate::{
    IntervalQueue, JobGroup, JobHandle, JobOptions, Retry, Turn,
    error::{Error, ErrorKind},
    job::{self, Target},
    retry::{self, Attempts, Plan},
    shard::{Accepted, Entry, Running, Start},
    telemetry::Scope,
    turn,
};

/// A job to be added, with its options; made by [`IntervalQueue::job`],
/// [`jobs`](IntervalQueue::jobs), [`retrying`](IntervalQueue::retrying),
/// [`turn`](IntervalQueue::turn) or [`pull`](IntervalQueue::pull).
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
/// use interval_queue::{IntervalQueue, Retry};
///
/// let queue = IntervalQueue::builder("api").interval(Duration::from_millis(100)).connect("memory:").await?;
/// let urgent = queue.job(async { "now" }).priority(1).start_within(Duration::from_secs(3)).add().await?;
/// let tried = queue.retrying(Retry::times(3), || async { Ok::<_, ()>(7) }).weight(2).add().await?;
/// let turn = queue.turn().priority(2).await?; // in place, without a task of its own
/// # drop(turn);
/// assert_eq!((urgent.await?, tried.await?), ("now", Ok(7)));
/// # Ok(())
/// # }
/// ```
///
/// The methods set single options of [`JobOptions`]; [`options`](Self::options) sets all at once.
#[derive(Clone, Debug)]
#[must_use = "nothing is added before `.add()`, `.try_add()` or, for a turn, `.await`"]
pub struct JobBuilder<J> {
    pub(crate) queue: IntervalQueue,
    pub(crate) options: JobOptions,
    pub(crate) job: J,
}

/// Jobs that are added together, see [`IntervalQueue::jobs`].
#[derive(Clone, Debug)]
pub struct Many<I>(pub(crate) I);

/// A job with retries, see [`IntervalQueue::retrying`].
#[derive(Clone, Debug)]
pub struct Retrying<M> {
    pub(crate) policy: Retry,
    pub(crate) make: M,
}

/// A wait for a slot, to run something in place, see [`IntervalQueue::turn`].
#[derive(Clone, Debug)]
pub struct InPlace(pub(crate) ());

impl<J> JobBuilder<J> {
    pub(crate) fn new(queue: &IntervalQueue, job: J) -> Self {
        Self { queue: queue.clone(), options: JobOptions::new(), job }
    }

    /// Replaces all options set so far. Default: [`JobOptions::new`].
    pub fn options(mut self, options: JobOptions) -> Self {
        self.options = options;
        self
    }

    /// The intervals that the job takes, see [`JobOptions::weight`]. Default: 1.
    pub fn weight(self, weight: u32) -> Self {
        self.with(|options| options.weight(weight))
    }

    /// Jobs with a higher priority start first, see [`JobOptions::priority`]. Default: 0.
    pub fn priority(self, priority: i32) -> Self {
        self.with(|options| options.priority(priority))
    }

    /// The latest start after the call, see [`JobOptions::start_within`]. Default: no limit.
    pub fn start_within(self, limit: Duration) -> Self {
        self.with(|options| options.start_within(limit))
    }

    /// The longest run, see [`JobOptions::timeout`]. Default: no limit.
    pub fn timeout(self, limit: Duration) -> Self {
        self.with(|options| options.timeout(limit))
    }

    /// The group that cancels the job. Default: none.
    pub fn group(self, group: &JobGroup) -> Self {
        self.with(|options| options.group(group))
    }

    fn with(mut self, change: impl FnOnce(JobOptions) -> JobOptions) -> Self {
        self.options = change(self.options);
        self
    }
}

impl<F> JobBuilder<F>
where
    F: Future<Output: Send> + Send + 'static,
{
    /// Adds the job like [`IntervalQueue::add`].
    ///
    /// # Errors
    ///
    /// As [`IntervalQueue::add`]; [`Invalid`](crate::ErrorKind::Invalid) for invalid options;
    /// [`TooLate`](crate::ErrorKind::TooLate) and [`Cancelled`](crate::ErrorKind::Cancelled) as
    /// documented at [`start_within`](JobOptions::start_within) and [`JobGroup::cancel`].
    ///
    /// # Cancel safety
    ///
    /// As [`IntervalQueue::add`].
    pub async fn add(self) -> Result<JobHandle<F::Output>, Error> {
        let Self { queue, options, job } = self;
        let terms = queue.terms(&options)?;
        let (start, result) = job::task(&queue.shard.host, options.timeout, job);
        let accepted = queue.shard.enqueue(&terms, start, Entry::New).await?;
        Ok(queue.handle(accepted, result))
    }

    /// Adds the job unless `add` would wait for [capacity](crate::Builder::max_waiting).
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add), and [`Full`](crate::ErrorKind::Full).
    pub fn try_add(self) -> Result<JobHandle<F::Output>, Error> {
        let Self { queue, options, job } = self;
        let terms = queue.terms(&options)?;
        let (start, result) = job::task(&queue.shard.host, options.timeout, job);
        let accepted = queue.shard.try_enqueue(&terms, start)?;
        Ok(queue.handle(accepted, result))
    }
}

impl<F> JobBuilder<F>
where
    F: Future<Output: Send> + Send + 'static,
{
    /// Starts the job if a slot is free now, and returns after the start. Reads the record first
    /// unless this shard has seen it within 50 ms, so a job that cannot start takes no ticket; one
    /// is wasted only if another shard is faster by less than a round trip. Ignores
    /// [`start_within`](Self::start_within).
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add); [`Full`](crate::ErrorKind::Full);
    /// [`TooLate`](crate::ErrorKind::TooLate) if no slot is free, with the estimated delay in
    /// [`Error::starts_in`].
    ///
    /// # Cancel safety
    ///
    /// If dropped before it returns, the job does not start.
    pub async fn try_now(self) -> Result<JobHandle<F::Output>, Error> {
        let Self { queue, options, job } = self;
        let options = options.start_within(Duration::ZERO);
        let wait = queue.estimate_wait(&options).await?;
        if wait.is_none_or(|starts_in| starts_in > queue.grace()) {
            return Err(Error::not_now(wait));
        }
        let (start, slot) = turn::handover();
        let Accepted { guard, taken } = queue.shard.try_enqueue(&queue.terms(&options)?, start)?;
        let running = match slot.await.unwrap_or_else(|_| Err(Error::cancelled())) {
            Ok(running) => running,
            Err(error) if error.kind() == ErrorKind::TooLate => {
                return Err(Error::not_now(queue.estimate_wait(&options).await?));
            }
            Err(error) => return Err(error),
        };
        let (start, result) = job::task(&queue.shard.host, options.timeout, job);
        let id = running.id;
        if let Ok(Some(abort)) = start.start(running) {
            queue.shard.line().running.entry(id).and_modify(|running| *running = Some(abort));
        }
        Ok(queue.handle(Accepted { guard, taken }, result))
    }
}

type Results<T> = Vec<oneshot::Receiver<Result<T, Error>>>;

type Tasks<T> = (IntervalQueue, Vec<Box<dyn Start>>, Results<T>);

impl<I> JobBuilder<Many<I>>
where
    I: IntoIterator<Item: Future<Output: Send> + Send + 'static>,
{
    /// Adds the jobs like [`IntervalQueue::add_all`], each with these options.
    ///
    /// # Errors
    ///
    /// As [`IntervalQueue::add_all`], and [`Invalid`](crate::ErrorKind::Invalid) for invalid
    /// options. The handle of a job that would start [too late](JobOptions::start_within) returns
    /// that error.
    ///
    /// # Cancel safety
    ///
    /// As [`IntervalQueue::add`].
    pub async fn add(self) -> Result<Vec<JobHandle<<I::Item as Future>::Output>>, Error> {
        let terms = self.queue.terms(&self.options)?;
        let (queue, starts, results) = self.tasks();
        let accepted = queue.shard.enqueue_all(&terms, starts, Entry::New).await?;
        Ok(queue.handles(accepted, results))
    }

    /// Adds the jobs unless `add` would wait for [capacity](crate::Builder::max_waiting).
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add), and [`Full`](crate::ErrorKind::Full).
    pub fn try_add(self) -> Result<Vec<JobHandle<<I::Item as Future>::Output>>, Error> {
        let terms = self.queue.terms(&self.options)?;
        let (queue, starts, results) = self.tasks();
        let accepted = queue.shard.try_enqueue_all(&terms, starts)?;
        Ok(queue.handles(accepted, results))
    }

    fn tasks(self) -> Tasks<<I::Item as Future>::Output> {
        let Self { queue, options, job: Many(jobs) } = self;
        let tasks = jobs.into_iter().map(|job| job::task(&queue.shard.host, options.timeout, job));
        let (starts, results) = tasks.unzip();
        (queue, starts, results)
    }
}

impl<M, Fut, T, E> JobBuilder<Retrying<M>>
where
    M: FnMut() -> Fut + Send + 'static,
    Fut: Future<Output = Result<T, E>> + Send + 'static,
    T: Send + 'static,
    E: Send + 'static,
{
    /// Adds the job. The options hold for each attempt, `start_within` only for the first. An
    /// attempt that exceeds its [`timeout`](JobOptions::timeout) has failed; after the last one,
    /// the handle returns that error.
    ///
    /// # Errors
    ///
    /// As [`IntervalQueue::add`], and [`Invalid`](crate::ErrorKind::Invalid) for an invalid policy
    /// or option.
    ///
    /// # Cancel safety
    ///
    /// As [`IntervalQueue::add`].
    pub async fn add(self) -> Result<JobHandle<Result<T, E>>, Error> {
        self.job.policy.check()?;
        let terms = self.queue.terms(&self.options)?;
        let (start, turn) = turn::handover();
        let accepted = self.queue.shard.enqueue(&terms, start, Entry::New).await?;
        let Self { queue, options, job } = self;
        let plan = Plan { policy: job.policy, terms: terms.without_deadline(), limit: options.timeout };
        Ok(begin(&queue, accepted, turn, plan, job.make))
    }

    /// Adds the job unless `add` would wait for [capacity](crate::Builder::max_waiting).
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add), and [`Full`](crate::ErrorKind::Full).
    pub fn try_add(self) -> Result<JobHandle<Result<T, E>>, Error> {
        let Self { queue, options, job } = self;
        job.policy.check()?;
        let terms = queue.terms(&options)?;
        let (start, turn) = turn::handover();
        let accepted = queue.shard.try_enqueue(&terms, start)?;
        let plan = Plan { policy: job.policy, terms: terms.without_deadline(), limit: options.timeout };
        Ok(begin(&queue, accepted, turn, plan, job.make))
    }
}

impl JobBuilder<InPlace> {
    async fn come(self) -> Result<Turn, Error> {
        let Self { queue, options, .. } = self;
        options.check_turn()?;
        let (start, slot) = turn::handover();
        let accepted = queue.shard.enqueue(&queue.terms(&options)?, start, Entry::New).await?;
        let mut running = slot.await.unwrap_or_else(|_| Err(Error::cancelled()))?;
        running.begin_turn();
        accepted.guard.disarm();
        Ok(Turn(running))
    }
}

impl IntoFuture for JobBuilder<InPlace> {
    type Output = Result<Turn, Error>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        self.come().boxed()
    }
}

impl IntervalQueue {
    pub(crate) fn handle<T>(
        &self,
        accepted: Accepted,
        result: oneshot::Receiver<Result<T, Error>>,
    ) -> JobHandle<T> {
        let Accepted { guard, taken } = accepted;
        JobHandle { shard: self.shard.clone(), target: Target::Job(guard.disarm()), taken, result }
    }

    fn handles<T>(&self, accepted: Vec<Accepted>, results: Results<T>) -> Vec<JobHandle<T>> {
        accepted.into_iter().zip(results).map(|(accepted, result)| self.handle(accepted, result)).collect()
    }
}

fn begin<F, Fut, T, E>(
    queue: &IntervalQueue,
    first: Accepted,
    turn: oneshot::Receiver<Result<Running, Error>>,
    plan: Plan,
    make: F,
) -> JobHandle<Result<T, E>>
where
    F: FnMut() -> Fut + Send + 'static,
    Fut: Future<Output = Result<T, E>> + Send + 'static,
    T: Send + 'static,
    E: Send + 'static,
{
    let Accepted { guard, taken } = first;
    let attempts = Arc::new(Attempts::new(guard.id));
    let (sender, result) = oneshot::channel();
    let run = retry::run(guard, turn, attempts.clone(), plan, make);
    // Every attempt belongs to the span of this call.
    let called_in = Scope::current();
    queue.shard.host.spawn(Box::pin(async move {
        let result = called_in.run_to_end(pin!(Some(run))).await;
        drop(called_in);
        // A detached job has no receiver.
        let _ = sender.send(result);
    }));
    JobHandle { shard: queue.shard.clone(), target: Target::Attempts(attempts), taken, result }
}
