//! Settings of a worker.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use interval_queue::{Host, InvalidInput, Label, Micros};
use interval_queue_task_contract::{Json, Kind, WorkerId};
use interval_queue_worker::{Identity, MAX_PREFETCH, PREFETCH_PER_PERMIT, Worker as Machine};
use serde::{Serialize, de::DeserializeOwned};
use uuid::{Builder, Uuid};

use super::{
    Worker,
    context::Context,
    core::{Core, MAX_GRACE},
    failure::{ErrorHook, WorkerFailure},
    handler::{self, Handler},
    load::Load,
    permits::Permits,
    task_error::TaskError,
};
use crate::{TaskQueue, error::Error};

const DEFAULT_JOBS: u32 = 10;
const DEFAULT_LEASE: Duration = Duration::from_secs(30);
const DEFAULT_GRACE: Duration = Duration::from_secs(10);

/// Settings of a worker, checked by [`build`](Self::build).
#[must_use]
pub struct WorkerBuilder<S = ()> {
    queue: TaskQueue,
    pub(super) state: Arc<S>,
    pub(super) handlers: BTreeMap<Kind, Handler>,
    jobs: Option<u32>,
    permits: Option<Permits>,
    prefetch: Option<u32>,
    lease: Duration,
    grace: Duration,
    capacity: Option<u32>,
    load: Option<Load>,
    label: Option<String>,
    on_error: Option<ErrorHook>,
    pub(super) wrong: Option<InvalidInput>,
}

impl Worker {
    /// Settings of a worker of this queue.
    pub fn builder(queue: &TaskQueue) -> WorkerBuilder {
        WorkerBuilder {
            queue: queue.clone(),
            state: Arc::new(()),
            handlers: BTreeMap::new(),
            jobs: None,
            permits: None,
            prefetch: None,
            lease: DEFAULT_LEASE,
            grace: DEFAULT_GRACE,
            capacity: None,
            load: None,
            label: None,
            on_error: None,
            wrong: None,
        }
    }
}

impl WorkerBuilder {
    /// Sets the [state](Context::state) for handlers added after this call, such as a connection
    /// pool.
    pub fn state<S: Send + Sync + 'static>(self, state: S) -> WorkerBuilder<S> {
        let Self { queue, handlers, jobs, permits, prefetch, .. } = self;
        let Self { lease, grace, capacity, load, label, on_error, wrong, .. } = self;
        let state = Arc::new(state);
        WorkerBuilder {
            queue,
            state,
            handlers,
            jobs,
            permits,
            prefetch,
            lease,
            grace,
            capacity,
            load,
            label,
            on_error,
            wrong,
        }
    }
}

impl<S: Send + Sync + 'static> WorkerBuilder<S> {
    /// Handles tasks of a kind. The argument is deserialized from the payload. The result is stored
    /// as JSON.
    ///
    /// A panic or an error fails the run, see [`TaskError`]. A payload that does not deserialize
    /// fails the task for good. A task can run more than once: make its effects idempotent, or have
    /// their receiver reject an old [token](Context::token). A handler that completes its run
    /// [within a transaction](crate::_guide::transactions) returns [`Completed`](crate::Completed).
    pub fn handler<P, R, E, F, Fut>(self, kind: impl AsRef<str>, f: F) -> Self
    where
        P: DeserializeOwned + Send + 'static,
        R: Serialize + Send + 'static,
        E: Into<TaskError> + Send + 'static,
        F: Fn(Context<S>, P) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, E>> + Send + 'static,
    {
        let handler = handler::typed(&self.state, f);
        self.with(kind.as_ref(), handler)
    }

    /// Handles tasks of several kinds. The handler reads the raw [payload](Context::payload).
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use interval_queue_tasks::{Context, Task, TaskError, TaskQueue, Worker};
    /// use interval_queue_tasks::Json;
    ///
    /// async fn echo(context: Context) -> Result<Json, TaskError> {
    ///     Ok(context.payload().clone())
    /// }
    /// # let queue = TaskQueue::builder("mails").connect("memory:").await?;
    /// # let id = queue.add(Task::new("b", &7)).await?.id();
    /// let worker = Worker::builder(&queue).handler_for(["a", "b"], echo).build()?;
    /// # worker.run_until_empty().await?;
    /// # assert_eq!(queue.wait::<u32>(id).await?, 7);
    /// # Ok(())
    /// # }
    /// ```
    pub fn handler_for<E, F, Fut>(mut self, kinds: impl IntoIterator<Item: AsRef<str>>, f: F) -> Self
    where
        E: Into<TaskError> + Send + 'static,
        F: Fn(Context<S>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Json, E>> + Send + 'static,
    {
        let handler = handler::raw(&self.state, f);
        for kind in kinds {
            self = self.with(kind.as_ref(), handler.clone());
        }
        self
    }

    pub(super) fn with(mut self, kind: &str, handler: Handler) -> Self {
        let wrong = match Kind::new(kind) {
            Err(error) => Some(error),
            Ok(kind) => {
                let text = format!("kind {:?} has two handlers: give it one", kind.as_str());
                self.handlers.insert(kind, handler).map(|_| InvalidInput::new(text))
            }
        };
        self.wrong = self.wrong.or(wrong);
        self
    }

    /// How many tasks run at once, 1 to 10,000. Default: 10, which suits I/O. For computations, set
    /// the number of processors.
    pub fn jobs(mut self, jobs: u32) -> Self {
        self.jobs = Some(jobs);
        self
    }

    /// Shares permits with workers of other queues. Then [`jobs`](Self::jobs) limits this worker's
    /// part (default: all permits), nothing is prefetched, and [`capacity`](Self::capacity) is per
    /// worker.
    pub fn permits(mut self, permits: &Permits) -> Self {
        self.permits = Some(permits.clone());
        self
    }

    /// Maximum number of tasks leased beyond [`jobs`](Self::jobs), to save round trips to the store.
    /// Default: 8 per job, at most 1,000. 0: none.
    ///
    /// While tasks wait in the store, the worker prefetches as many as it starts in two round trips,
    /// or in 50 ms if that is shorter: many tasks of 1 ms, none of 1 s. It gives back tasks that
    /// have not started after 100 ms, and all of them when the queue or a kind is paused.
    ///
    /// Not prefetched are tasks with a key, tasks that have failed before or may run only once, and
    /// tasks of a queue with a rate or `max_running` or of a worker with a
    /// [capacity](Self::capacity). If the worker is killed, prefetched tasks run elsewhere after its
    /// lease, and no failure is counted.
    ///
    /// A prefetched task can start before a more urgent one that is added up to 100 ms later. For a
    /// strict order, set 0.
    pub fn prefetch(mut self, tasks: u32) -> Self {
        self.prefetch = Some(tasks);
        self
    }

    /// How long the worker counts as alive after its last poll: 1 s to a day, default 30 s. While
    /// it holds tasks, it renews the lease five times in this time. The tasks of a killed process
    /// run again after this time.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self
    }

    /// How long a [stopped](super::WorkerHandle::stop) worker waits for its runs: default 10 s, at
    /// most a day.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Limits the total [weight](crate::Task::weight) of held tasks: at least 1, default unlimited.
    /// Tasks are leased in order; lighter tasks do not pass one that does not fit. A task heavier
    /// than the capacity runs alone.
    pub fn capacity(mut self, weight: u32) -> Self {
        self.capacity = Some(weight);
        self
    }

    /// Limits which tasks are leased while the host is busy. Default: no limit.
    pub fn under_load(mut self, load: Load) -> Self {
        self.load = Some(load);
        self
    }

    /// The worker's name for people. Default: the process id.
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into());
        self
    }

    /// A hook for failures that belong to no task: of schedules and of the rate. It may block.
    /// Default: they are only logged. No reaction is needed: the worker retries. Outages of the
    /// whole store are reported by [`WorkerHandle::connection`](super::WorkerHandle::connection).
    pub fn on_error(mut self, hook: impl Fn(&WorkerFailure) + Send + Sync + 'static) -> Self {
        self.on_error = Some(ErrorHook(Arc::new(hook)));
        self
    }

    pub(crate) fn queue(&self) -> &TaskQueue {
        &self.queue
    }

    /// Builds the worker, which does nothing until it is run.
    ///
    /// # Errors
    ///
    /// [`Invalid`](crate::ErrorKind::Invalid) for a setting that is out of bounds or conflicts with
    /// another.
    pub fn build(self) -> Result<Worker, Error> {
        if let Some(wrong) = self.wrong {
            return Err(wrong.into());
        }
        if self.grace > MAX_GRACE {
            let text = format!("grace {:?} is out of range: give at most a day", self.grace);
            return Err(Error::invalid(text));
        }
        if let (Some(1..), Some(_)) = (self.prefetch, &self.permits) {
            let text =
                "a prefetch with shared permits: no task is leased ahead of them; leave one of both out";
            return Err(Error::invalid(text));
        }
        let shared = self.permits.as_ref().map(Permits::jobs);
        let jobs = self.jobs.or(shared).unwrap_or(DEFAULT_JOBS);
        let most = MAX_PREFETCH.min(interval_queue_task_contract::MAX_HELD.saturating_sub(jobs));
        let default = jobs.saturating_mul(PREFETCH_PER_PERMIT).min(most);
        let identity = Identity {
            worker: WorkerId::new(random_id(&*self.queue.shared.host)),
            label: Label::new(self.label.unwrap_or_else(|| format!("pid {}", std::process::id())))?,
            kinds: self.handlers.keys().cloned().collect(),
            lease: Micros::from_duration(self.lease),
            permits: jobs,
            prefetch: if shared.is_some() { 0 } else { self.prefetch.unwrap_or(default) },
            capacity: self.capacity,
        };
        identity.check()?;
        shared.map_or(Ok(()), |permits| Identity { permits, ..identity.clone() }.check())?;
        self.load.as_ref().map_or(Ok(()), Load::check)?;
        let mut machine = Machine::new(identity);
        machine.pace.ahead = self.queue.shared.rate.current().map(|_| 1);
        let core =
            Core::new(self.queue, self.handlers, machine, self.load, self.on_error, self.permits.as_ref());
        Ok(Worker { core: Arc::new(core), grace: self.grace })
    }
}

fn random_id(host: &dyn Host) -> Uuid {
    let [high, low] = [host.random(), host.random()];
    Builder::from_random_bytes((u128::from(high) << 64 | u128::from(low)).to_be_bytes()).into_uuid()
}

impl<S> std::fmt::Debug for WorkerBuilder<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kinds = self.handlers.keys();
        f.debug_struct("WorkerBuilder")
            .field("kinds", &kinds)
            .field("jobs", &self.jobs)
            .finish_non_exhaustive()
    }
}
