//! Workers lease tasks of a queue and run their handlers. `driver` carries out the decisions of the
//! state machine in crate `interval-queue-worker`.

mod batch;
mod builder;
mod connection;
mod context;
mod core;
mod driver;
mod failure;
mod handler;
mod load;
mod outage;
mod permits;
mod ready_tasks;
mod run;
mod run_flow;
mod schedules;
mod task_error;
#[cfg(feature = "tower")]
mod tower_layer;
mod watch;
mod worker_pace;

use std::{sync::Arc, time::Duration};

pub use builder::WorkerBuilder;
pub use connection::{Lease, WorkerConnection};
pub use context::{Context, Inputs};
use core::Core;
use driver::Until;
pub use failure::WorkerFailure;
#[cfg(feature = "tower")]
pub use handler::Output;
use interval_queue_task_contract::{Kind, WorkerId};
pub use load::Load;
pub use outage::Outage;
pub use permits::{Permits, QueueOrder};
pub use task_error::TaskError;
use tokio::sync::watch::Receiver;
#[cfg(feature = "tower")]
pub use tower_layer::{HandlerError, HandlerService};

use crate::{error::Error, totals::Totals};

/// A worker leases the most urgent tasks of its kinds, runs each as an async task and reports the
/// outcomes. Any number of workers and processes can share a queue.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use interval_queue_tasks::{Context, Task, TaskError, TaskQueue, Worker};
///
/// async fn greet(_: Context, name: String) -> Result<String, TaskError> {
///     Ok(format!("Dear {name}"))
/// }
///
/// let queue = TaskQueue::builder("mails").connect("memory:").await?;
/// let id = queue.add(Task::new("greet", &"Ada")).await?.id();
/// Worker::builder(&queue).handler("greet", greet).build()?.run_until_empty().await?;
/// assert_eq!(queue.wait::<String>(id).await?, "Dear Ada");
/// # Ok(())
/// # }
/// ```
///
/// A worker renews its lease several times per lease. If it fails to, its tasks run again
/// elsewhere. It drops its own runs before that, by its own clock. So a task runs at least once,
/// and a task with a [single attempt](crate::Task::max_attempts) at most once.
#[derive(Debug)]
pub struct Worker {
    core: Arc<Core>,
    grace: Duration,
}

/// Stops a worker and reports outages of its store.
#[derive(Clone, Debug)]
pub struct WorkerHandle {
    core: Arc<Core>,
    grace: Duration,
}

impl Worker {
    /// The id, new for each worker.
    pub fn id(&self) -> WorkerId {
        self.core.machine().identity.worker
    }

    /// A handle that can stop the worker.
    pub fn handle(&self) -> WorkerHandle {
        WorkerHandle { core: self.core.clone(), grace: self.grace }
    }

    /// See [`WorkerHandle::outage`].
    pub fn outage(&self) -> Option<Outage> {
        self.core.outages().current(self.core.now())
    }

    /// Runs tasks until the worker is [stopped](WorkerHandle::stop). Returns how its runs ended.
    ///
    /// # Errors
    ///
    /// [`Store`](crate::ErrorKind::Store) if the first poll fails with an error that retries cannot
    /// fix. Later errors are retried, logged as `store.failed` and reported as an
    /// [outage](WorkerHandle::outage).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the runs. Their tasks run again elsewhere after the lease. Stop
    /// the worker instead.
    pub async fn run(self) -> Result<Totals, Error> {
        driver::drive(self.core, Until::Stopped).await
    }

    /// Runs tasks until `shutdown`, such as a signal, completes. Then [stops](WorkerHandle::stop).
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    ///
    /// # Cancel safety
    ///
    /// As [`run`](Self::run).
    pub async fn run_until(self, shutdown: impl Future<Output = ()>) -> Result<Totals, Error> {
        let handle = self.handle();
        let mut run = std::pin::pin!(self.run());
        tokio::select! {
            biased;
            ended = &mut run => return ended,
            () = shutdown => handle.stop(),
        }
        run.await
    }

    /// Runs tasks until none of the worker's kinds is ready, running anywhere, or waiting for its
    /// time, its key or another task. Due schedules have added their tasks by then.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    ///
    /// # Cancel safety
    ///
    /// As [`run`](Self::run).
    pub async fn run_until_empty(self) -> Result<Totals, Error> {
        driver::drive(self.core, Until::Empty).await
    }
}

impl WorkerHandle {
    /// The store's current outage. `None`: the last poll was answered, or none was sent. For a
    /// health check:
    ///
    /// ```
    /// # use interval_queue_tasks::WorkerHandle;
    /// use std::time::Duration;
    ///
    /// fn is_healthy(worker: &WorkerHandle) -> bool {
    ///     worker.outage().is_none_or(|outage| outage.error.is_retryable() && outage.lasted < Duration::from_secs(60))
    /// }
    /// ```
    pub fn outage(&self) -> Option<Outage> {
        self.core.outages().current(self.core.now())
    }

    /// The connection to the store, as of the last poll. The receiver is notified when a poll is sent,
    /// is answered or fails, for example to print an outage.
    pub fn connection(&self) -> Receiver<WorkerConnection> {
        self.core.connection.subscribe()
    }

    /// Leases no tasks of this kind until [`take_up`](Self::take_up), for example because this host
    /// lacks something. Other workers run them. [`run_until_empty`](Worker::run_until_empty) does
    /// not wait for them.
    pub fn set_aside(&self, kind: &Kind) {
        self.core.machine().set_aside(kind);
        self.core.wake.notify_one();
    }

    /// Leases tasks of a kind that was [set aside](Self::set_aside). Ignores kinds without a
    /// handler.
    pub fn take_up(&self, kind: &Kind) {
        if self.core.handlers.contains_key(kind) {
            self.core.machine().take_up(kind.clone());
            self.core.wake.notify_one();
        }
    }

    /// Leases no tasks for `time` from now, for example because the host is busy. Runs go on. Other
    /// workers take the tasks.
    pub fn rest(&self, time: Duration) {
        self.core.rest(time);
    }

    /// Stops the worker: it starts nothing more, releases tasks that have not begun, and waits for
    /// its runs up to the [grace](WorkerBuilder::grace). Then it ends the runs and releases their
    /// tasks.
    pub fn stop(&self) {
        self.core.stop_within(self.grace);
    }

    /// As [`stop`](Self::stop), with another grace of at most a day.
    pub fn stop_within(&self, grace: Duration) {
        self.core.stop_within(grace);
    }
}
