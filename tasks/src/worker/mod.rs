//! Workers: what runs tasks.

mod builder;
mod context;
mod core;
mod driver;
mod handler;
mod load;
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
use interval_queue_task_contract::WorkerId;
pub use load::Load;
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

/// Stops a worker from elsewhere.
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

    /// Runs tasks until it is [stopped](WorkerHandle::stop). What became of its runs.
    ///
    /// # Errors
    ///
    /// [`Store`](crate::ErrorKind::Store) if the first that the store says is an error that will not pass by itself.
    /// Later ones are told, and tried again.
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
    /// waits for its time, its key or another task.
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
