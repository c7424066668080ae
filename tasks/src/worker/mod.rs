//! Workers: what runs tasks.

mod builder;
mod context;
mod core;
mod driver;
mod handler;
mod load;
mod outage;
mod pace;
mod places;
mod run;
mod schedules;
mod task_error;
mod watch;

use std::{sync::Arc, time::Duration};

pub use builder::WorkerBuilder;
pub use context::{Context, Inputs};
use core::Core;
use interval_queue_task_contract::{Kind, WorkerId};
pub use load::Load;
pub use outage::Outage;
pub use places::{Places, Turns};
pub use task_error::TaskError;

use crate::{error::Error, totals::Totals};

/// Runs tasks of a queue: leases the most urgent ones that its handlers can do, runs each as a task of its own, and
/// tells the store how it ended. Any number of workers in any number of processes share a queue.
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
/// A worker says several times a lease that it lives. One that was silent for longer is held for dead: its tasks run
/// again elsewhere, and its own runs are dropped, by its own clock and before that. A task so runs at least once; one
/// with a [single attempt](crate::Task::max_attempts) at most once.
#[derive(Debug)]
pub struct Worker {
    core: Arc<Core>,
    grace: Duration,
}

/// Stops a worker from elsewhere, and reports how it stands with its store.
#[derive(Clone, Debug)]
pub struct WorkerHandle {
    core: Arc<Core>,
    grace: Duration,
}

impl Worker {
    /// Its id: a new one with each.
    pub fn id(&self) -> WorkerId {
        self.core.machine().identity.worker
    }

    /// What stops it from elsewhere.
    pub fn handle(&self) -> WorkerHandle {
        WorkerHandle { core: self.core.clone(), grace: self.grace }
    }

    /// See [`WorkerHandle::outage`].
    pub fn outage(&self) -> Option<Outage> {
        self.core.outages().current(self.core.now())
    }

    /// Runs tasks until it is [stopped](WorkerHandle::stop). What became of its runs.
    ///
    /// # Errors
    ///
    /// [`Store`](crate::ErrorKind::Store) if the first that the store says is an error that will not pass by itself.
    /// It tries again after later ones, reports them as the event `store.failed`, and has them as its
    /// [outage](WorkerHandle::outage).
    ///
    /// # Cancel safety
    ///
    /// Dropped, its runs are dropped, and their tasks run again elsewhere when its lease has ended. Stop it instead.
    pub async fn run(self) -> Result<Totals, Error> {
        driver::drive(self.core, false).await
    }

    /// Runs tasks until this has happened, such as a signal, and then [stops](WorkerHandle::stop).
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

    /// Runs tasks until nothing is left of the kinds that it serves: none is ready, none runs anywhere, and none
    /// waits for its time, its key or another task. Schedules that are due have made their tasks by then.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    ///
    /// # Cancel safety
    ///
    /// As [`run`](Self::run).
    pub async fn run_until_empty(self) -> Result<Totals, Error> {
        driver::drive(self.core, true).await
    }
}

impl WorkerHandle {
    /// The outage of the store that the worker is in. `None`: the store has answered its last step, or it has sent none.
    /// For a health check:
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

    /// Takes no more tasks of this kind until it is [taken up](Self::take_up) again: what they need is missing here, say.
    /// Other workers take them. [`run_until_empty`](Worker::run_until_empty) does not wait for them.
    pub fn set_aside(&self, kind: &Kind) {
        self.core.machine().set_aside(kind);
        self.core.wake.notify_one();
    }

    /// Takes tasks of a kind again that was [set aside](Self::set_aside). One that has no handler stays out.
    pub fn take_up(&self, kind: &Kind) {
        if self.core.handlers.contains_key(kind) {
            self.core.machine().take_up(kind.clone());
            self.core.wake.notify_one();
        }
    }

    /// Takes no tasks of any kind for this time, counted from now: the host cannot run any, say. What runs goes on, and
    /// other workers take the tasks.
    pub fn rest(&self, time: Duration) {
        self.core.rest(time);
    }

    /// Has the worker end: it begins nothing more, gives back what has not begun, waits for its runs for as long as the
    /// [grace](WorkerBuilder::grace) says, and then ends them and gives them back, too.
    pub fn stop(&self) {
        self.core.stop_within(self.grace);
    }

    /// The same, with another grace.
    pub fn stop_within(&self, grace: Duration) {
        self.core.stop_within(grace);
    }
}
