//! The handle that applications hold, and what all its clones share.

use std::{
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures::FutureExt;
use interval_queue::{Host, IntervalQueue, QueueName, StateError, StateErrorKind};
use interval_queue_task_contract::{Command, Policy, Reply, Settings, TaskStore};
use interval_queue_worker::{COMMAND_TIMEOUT, retries};
use tokio::sync::Notify;

use crate::{
    error::{Error, ErrorKind},
    host,
    telemetry::Telemetry,
};

/// A queue of stored tasks: adds tasks, tells how they stand, and changes them. [Workers](crate::Worker) run them.
///
/// Cloning gives another handle to the same queue.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), interval_queue_tasks::Error> {
/// use interval_queue_tasks::{Task, TaskQueue};
///
/// let queue = TaskQueue::builder("mails").connect("memory:").await?;
/// let id = queue.add(Task::new("welcome", &"Ada")).await?.id();
/// assert_eq!(queue.task(id).await?.map(|stored| stored.task.kind.to_string()), Some("welcome".into()));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct TaskQueue {
    pub(crate) shared: Arc<Shared>,
    pub(crate) pace: Option<IntervalQueue>,
    pub(crate) overruled: Option<Settings>,
}

/// What all handles and workers of an opened queue share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) name: QueueName,
    pub(crate) store: Arc<dyn TaskStore>,
    /// Where its calls and workers run.
    pub(crate) host: Arc<dyn Host>,
    pub(crate) telemetry: Telemetry,
    /// Told when a worker here has heard that tasks have ended.
    pub(crate) settled: Notify,
    patience: Duration,
    settings: Mutex<Settings>,
}

impl TaskQueue {
    /// Its name.
    pub fn name(&self) -> &QueueName {
        &self.shared.name
    }

    /// The pace at which tasks start, if the queue has one: to [hold](IntervalQueue::hold) it, say, for a
    /// `Retry-After`.
    pub fn pace(&self) -> Option<&IntervalQueue> {
        self.pace.as_ref()
    }

    /// The settings that were asked for, if the queue was there with others that were [kept](crate::OnExisting::Keep).
    pub fn overruled(&self) -> Option<&Settings> {
        self.overruled.as_ref()
    }
}

impl Shared {
    pub(crate) fn new(
        name: QueueName,
        store: Arc<dyn TaskStore>,
        host: Arc<dyn Host>,
        telemetry: Telemetry,
        patience: Duration,
    ) -> Self {
        Self { name, store, host, telemetry, settled: Notify::new(), patience, settings: Mutex::default() }
    }

    fn settings(&self) -> MutexGuard<'_, Settings> {
        self.settings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What becomes of failures, as far as is known.
    pub(crate) fn policy(&self) -> Policy {
        self.settings().policy
    }

    /// Whether the queue runs a limited number of tasks, as far as is known.
    pub(crate) fn is_limited(&self) -> bool {
        self.settings().max_running.is_some()
    }

    pub(crate) fn learn(&self, settings: &Settings) {
        *self.settings() = settings.clone();
    }

    /// Sends a command, bounded in time. A store that panics has failed.
    pub(crate) async fn command(&self, command: Command) -> Result<Reply, StateError> {
        let done = AssertUnwindSafe(async { self.store.apply(&self.name, command).await }).catch_unwind();
        let reply = match host::timeout(&*self.host, COMMAND_TIMEOUT, done).await {
            Some(Ok(reply)) => reply,
            Some(Err(_)) => Err(StateError::new(StateErrorKind::Unreachable, "the store panicked")),
            None => {
                let text = format!("the store did not answer within {COMMAND_TIMEOUT:?}");
                Err(StateError::new(StateErrorKind::TimedOut, text))
            }
        };
        reply.inspect_err(|error| self.telemetry.store_error(error))
    }

    /// The same, tried again as long as is waited for a store.
    pub(crate) async fn insist(&self, what: &str, command: Command) -> Result<Reply, Error> {
        self.repeat(what, || command.clone()).await
    }

    /// The same with a command that is made again for each try.
    pub(crate) async fn repeat(&self, what: &str, mut make: impl FnMut() -> Command) -> Result<Reply, Error> {
        make().check()?;
        let began = self.host.now();
        let mut delays = retries(MAX_DELAY, self.host.random());
        loop {
            let error = match self.command(make()).await {
                Ok(reply) => return Ok(reply),
                Err(error) if !error.is_retryable() => return Err(error.into()),
                Err(error) => error,
            };
            let delay = delays.next().unwrap_or(MAX_DELAY);
            let passed = self.host.now().saturating_duration_since(began);
            if passed + delay > self.patience {
                return Err(Error::unanswered(what, passed, error));
            }
            host::sleep(&*self.host, delay).await;
        }
    }
}

/// The longest time between two tries of a call that somebody waits for, before jitter.
const MAX_DELAY: Duration = Duration::from_secs(2);

/// A store that answers something else than it was asked.
pub(crate) fn unexpected(reply: &Reply) -> Error {
    Error::new(ErrorKind::Store, format!("the store gave an answer of another kind: {reply:?}"))
}
