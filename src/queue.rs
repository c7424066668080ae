//! The handle that applications hold.

use std::{future::Future, sync::Arc, time::Duration};

use futures::{FutureExt, future::BoxFuture};
use interval_queue_contract::{Change, Command, MaxRunning, Micros, QueueName, ShardId};
use tokio::{sync::oneshot, time::timeout};

use crate::{
    Builder, JobHandle, JobOptions, Reason, Retry, Status, Turn, clock,
    error::Error,
    job::{self, Target},
    retry::{self, Attempts},
    shard::{Place, Shard},
    turn,
};

/// A shard of a queue: adds jobs that start at the one pace that all shards of that name share.
///
/// Cloning gives another handle to the same shard. Jobs that were accepted run also when every handle is dropped, as
/// long as the runtime lives.
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
    shard: Arc<Shard>,
}

/// What [`IntervalQueue::tick`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tick {
    /// How many jobs of this shard wait for their start.
    pub waiting: usize,
    /// Whether the queue is paused, as far as this shard knows.
    pub paused: bool,
}

/// What [`IntervalQueue::shutdown`] ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Shutdown {
    /// How many jobs had not started and were cancelled.
    pub cancelled: usize,
    /// How many jobs still ran when the grace was over, and were aborted. Turns cannot be aborted.
    pub aborted: usize,
}

impl IntervalQueue {
    /// Settings for opening the queue of that name: 1 to 200 bytes of printable text.
    pub fn builder(name: impl Into<String>) -> Builder {
        Builder::new(name.into())
    }

    pub(crate) fn new(shard: Shard) -> Self {
        Self { shard: Arc::new(shard) }
    }

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
        self.shard.line().memory.interval.to_duration()
    }

    /// How many jobs of all shards may run at once, as far as this shard knows. None: any number.
    pub fn max_running(&self) -> Option<u32> {
        self.shard.line().memory.max_running
    }

    /// Adds a job. Returns once it has its ticket; the job starts at its slot, as a task of its own.
    ///
    /// While the state is unreachable this waits, as the jobs do.
    ///
    /// # Errors
    ///
    /// [`Closed`](crate::ErrorKind::Closed), or [`State`](crate::ErrorKind::State) for a failure that will not pass
    /// by itself. The job is dropped then.
    ///
    /// # Panics
    ///
    /// Never; a panic in the job is the error of its handle.
    ///
    /// # Cancel safety
    ///
    /// Dropped before it returned, the job is withdrawn and its place given up.
    pub async fn add<F, T>(&self, job: F) -> Result<JobHandle<T>, Error>
    where
        F: Future<Output = T> + Send + 'static,
        T: Send + 'static,
    {
        self.add_with(JobOptions::new(), job).await
    }

    /// As [`add`](Self::add), with options.
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add), and [`Invalid`](crate::ErrorKind::Invalid) for options that cannot be used.
    pub async fn add_with<F, T>(&self, options: JobOptions, job: F) -> Result<JobHandle<T>, Error>
    where
        F: Future<Output = T> + Send + 'static,
        T: Send + 'static,
    {
        self.refuse_if_closed()?;
        let (job, result) = job::task(options.check()?, job);
        let (place, ticket) = self.shard.enqueue(job).await?;
        let target = Target::Job(place.disarm());
        Ok(JobHandle { shard: self.shard.clone(), target, ticket, result })
    }

    /// Adds a job that is tried again when it fails: after a delay it takes a new ticket at the back of the queue.
    /// The handle gives the first success or the last error. A panic is not tried again.
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
        policy.check()?;
        self.refuse_if_closed()?;
        let weight = JobOptions::new().check()?;
        let (job, turn) = turn::handover(weight);
        let (place, ticket) = self.shard.enqueue(job).await?;
        let attempts = Arc::new(Attempts::new(place.id));
        let (sender, result) = oneshot::channel();
        let run = retry::run(place, turn, attempts.clone(), policy, weight, make);
        tokio::spawn(async move {
            // A detached job has nobody who wants its result.
            let _ = sender.send(run.await);
        });
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
        F: Fn(A) -> Fut,
        Fut: Future<Output = T> + Send + 'static,
        T: Send + 'static,
    {
        let queue = self.clone();
        move |argument| {
            let (queue, call) = (queue.clone(), f(argument));
            async move { queue.add(call).await?.await }.boxed()
        }
    }

    /// Waits for one's slot, to run something in place. While the turn lives it counts as a running job.
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add), and [`Cancelled`](crate::ErrorKind::Cancelled) after [`shutdown`](Self::shutdown).
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
    /// As [`turn`](Self::turn), and [`Invalid`](crate::ErrorKind::Invalid) for options that cannot be used.
    pub async fn turn_with(&self, options: JobOptions) -> Result<Turn, Error> {
        self.refuse_if_closed()?;
        let (job, place) = turn::handover(options.check()?);
        let (waiting, _): (Place, _) = self.shard.enqueue(job).await?;
        let running = place.await.map_err(|_| Error::cancelled())?;
        waiting.disarm();
        Ok(Turn(running))
    }

    /// Stops all starts on all shards. Jobs keep waiting; running ones go on. Starts that were granted before, at
    /// most [one second](crate::MAX_LEAD) ahead, still happen.
    ///
    /// # Errors
    ///
    /// [`State`](crate::ErrorKind::State): the change may not have been made; see
    /// [`StateErrorKind::TimedOut`](crate::StateErrorKind::TimedOut).
    pub async fn pause(&self) -> Result<(), Error> {
        self.shard.change(Change::Pause).await
    }

    /// Ends a pause for all shards and starts this one. Others that have gone idle start with their next
    /// [`add`](Self::add), [`start`](Self::start) or [`tick`](Self::tick).
    ///
    /// # Errors
    ///
    /// As [`pause`](Self::pause).
    pub async fn resume(&self) -> Result<(), Error> {
        self.shard.change(Change::Resume).await?;
        self.start();
        Ok(())
    }

    /// Makes no shard start anything for this long, at most 366 days; a longer hold that is in force stays. For a
    /// `Retry-After`, say.
    ///
    /// # Errors
    ///
    /// As [`pause`](Self::pause), and [`Invalid`](crate::ErrorKind::Invalid) for a longer hold.
    pub async fn hold(&self, duration: Duration) -> Result<(), Error> {
        self.shard.change(Change::Hold(Micros::from_duration(duration))).await
    }

    /// Changes the interval for all shards: 1 µs to 366 days.
    ///
    /// # Errors
    ///
    /// As [`pause`](Self::pause), and [`Invalid`](crate::ErrorKind::Invalid).
    pub async fn set_interval(&self, interval: Duration) -> Result<(), Error> {
        let interval = Some(Micros::from_duration(interval));
        self.shard.change(Change::Set { interval, max_running: MaxRunning::Keep }).await?;
        self.start();
        Ok(())
    }

    /// Changes for all shards how many jobs may run at once. Jobs that run already are counted as far as the record
    /// knows of them: at the latest half a lease later.
    ///
    /// # Errors
    ///
    /// As [`pause`](Self::pause), and [`Invalid`](crate::ErrorKind::Invalid) for zero.
    pub async fn set_max_running(&self, max_running: MaxRunning) -> Result<(), Error> {
        self.shard.change(Change::Set { interval: None, max_running }).await?;
        self.start();
        Ok(())
    }

    /// Makes this shard ask for its next slot now: the nudge for a shard that has gone idle in a pause. Does nothing if
    /// no jobs wait. Safe to call at any time and any rate a person or cron would.
    pub fn start(&self) {
        let waits = {
            let mut line = self.shard.line();
            line.nudge(clock::now());
            line.waiting() > 0 || !line.running.is_empty()
        };
        if waits {
            self.shard.wake();
        }
    }

    /// As [`start`](Self::start), and waits until the state has answered: for a cron job, a signal or a health check.
    ///
    /// # Cancel safety
    ///
    /// Dropped, the nudge has been given all the same.
    pub async fn tick(&self) -> Tick {
        let mut answered = std::pin::pin!(self.shard.answered.notified());
        answered.as_mut().enable();
        self.start();
        let driving = self.shard.line().driving;
        if driving && self.waiting() > 0 {
            answered.await;
        }
        let line = self.shard.line();
        Tick { waiting: line.waiting(), paused: line.memory.paused }
    }

    /// How many jobs of this shard wait for their start.
    pub fn waiting(&self) -> usize {
        self.shard.line().waiting()
    }

    /// How many jobs of this shard run.
    pub fn running(&self) -> usize {
        self.shard.line().running.len()
    }

    /// How the queue stands and what its next start waits for. Reads the record and changes nothing.
    pub async fn status(&self) -> Status {
        let shared = self.shard.command(Command::Read).await.and_then(interval_queue_contract::Reply::read);
        let line = self.shard.line();
        let since =
            line.failing.as_ref().map(|failing| clock::now().saturating_duration_since(failing.since));
        let (shared, reason) = match shared {
            Ok(Some(snapshot)) => {
                let reason = Reason::Standing(snapshot.standing());
                (Some(snapshot), reason)
            }
            Ok(None) => (None, Reason::Gone),
            Err(error) => {
                let since = since.unwrap_or_default();
                (None, Reason::StateUnreachable { since, error: error.to_string() })
            }
        };
        Status {
            queue: self.shard.queue.clone(),
            shard: line.identity.shard.clone(),
            waiting: line.waiting(),
            running: line.running.len(),
            closed: line.closed,
            reason,
            shared,
        }
    }

    /// Waits until no job of this shard waits or runs and nothing of it is left in the record.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn wait_idle(&self) {
        self.shard.settle().await;
    }

    /// Takes no more jobs from this call on. The future waits until the accepted ones have finished.
    ///
    /// # Cancel safety
    ///
    /// Dropped, the queue is closed all the same.
    pub fn close(&self) -> impl Future<Output = ()> + use<'_> {
        self.shard.line().closed = true;
        self.wait_idle()
    }

    /// Takes no more jobs, cancels those that wait and gives their places up, then gives the running ones `grace` to
    /// finish and aborts those that have not.
    ///
    /// # Cancel safety
    ///
    /// Dropped once it was polled, the waiting jobs are cancelled; running ones go on.
    pub async fn shutdown(&self, grace: Duration) -> Shutdown {
        let waiting = {
            let mut line = self.shard.line();
            line.closed = true;
            line.shut_down = true;
            line.withdraw_all()
        };
        let cancelled = waiting.len();
        drop(waiting);
        self.shard.ended.notify_waiters();
        self.shard.wake();
        if timeout(grace, self.wait_idle()).await.is_ok() {
            return Shutdown { cancelled, aborted: 0 };
        }
        let handles: Vec<_> = self.shard.line().running.values().flatten().cloned().collect();
        handles.iter().for_each(futures::future::AbortHandle::abort);
        // An aborted job ends where it next waits; one that never does is left behind.
        let _ = timeout(clock::ABORT_PATIENCE, self.wait_idle()).await;
        Shutdown { cancelled, aborted: handles.len() }
    }

    fn refuse_if_closed(&self) -> Result<(), Error> {
        if self.shard.line().closed { Err(Error::closed()) } else { Ok(()) }
    }
}
