//! `TaskQueue`, the handle that applications hold, and the state shared by its clones and workers.

use std::{
    panic::AssertUnwindSafe,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use futures::FutureExt;
use interval_queue::{Host, QueueName, SharedState, StateError, StateErrorKind};
use interval_queue_task_contract::{Command, Reply, Settings, TaskStore};
use interval_queue_worker::{COMMAND_TIMEOUT, retries};
use tokio::sync::Notify;

use crate::{
    codec::QueueCodec,
    error::{Error, ErrorKind},
    host::{self, Tokio},
    rate::Rate,
    telemetry::Telemetry,
};

/// A queue of stored tasks: adds, reads and changes them. [Workers](crate::Worker) run them.
///
/// A clone is another handle to the same queue.
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
    pub(crate) overruled: Option<Settings>,
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) name: QueueName,
    pub(crate) store: Arc<dyn TaskStore>,
    pub(crate) rate: Rate,
    pub(crate) host: Arc<dyn Host>,
    pub(crate) telemetry: Telemetry,
    pub(crate) codec: QueueCodec,
    /// When the store has answered a local worker's completions.
    pub(crate) completed: Notify,
    timeout: Duration,
    settings: Mutex<Settings>,
    /// See `Shared::sequence`.
    sequence: AtomicU32,
}

impl TaskQueue {
    /// The queue's name.
    pub fn name(&self) -> &QueueName {
        &self.shared.name
    }

    /// The requested settings, if the queue existed with others, which were
    /// [kept](crate::OnExisting::Keep).
    pub fn overruled(&self) -> Option<&Settings> {
        self.overruled.as_ref()
    }
}

/// Below 10 minutes: at that age stores reject unknown ids, so retries must end before.
const MAX_TIMEOUT: Duration = Duration::from_secs(9 * 60);

impl TaskQueue {
    /// Reads nothing. `host`: `None` is the caller's tokio runtime.
    pub(crate) fn handle(
        name: QueueName,
        tasks: Arc<dyn TaskStore>,
        pace: Arc<dyn SharedState>,
        timeout: Duration,
        host: Option<Arc<dyn Host>>,
        codec: QueueCodec,
    ) -> Result<Self, Error> {
        if timeout > MAX_TIMEOUT {
            let text = format!("timeout {timeout:?} is out of range: give at most {MAX_TIMEOUT:?}");
            return Err(Error::invalid(text));
        }
        let telemetry = Telemetry::new(name.clone());
        let rate = Rate::new(name.clone(), pace, host.clone());
        let host = host.unwrap_or_else(|| Arc::new(Tokio));
        let shared = Shared::new(name, tasks, rate, host, telemetry, timeout, codec);
        Ok(Self { shared: Arc::new(shared), overruled: None })
    }
}

impl Shared {
    pub(crate) fn new(
        name: QueueName,
        store: Arc<dyn TaskStore>,
        rate: Rate,
        host: Arc<dyn Host>,
        telemetry: Telemetry,
        timeout: Duration,
        codec: QueueCodec,
    ) -> Self {
        Self {
            name,
            store,
            rate,
            host,
            telemetry,
            codec,
            completed: Notify::new(),
            timeout,
            settings: Mutex::default(),
            sequence: AtomicU32::new(0),
        }
    }

    fn settings(&self) -> MutexGuard<'_, Settings> {
        self.settings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// For `tasks` tasks. Restarts at 0 before it overflows.
    pub(crate) fn sequence(&self, tasks: usize) -> u32 {
        let tasks = u32::try_from(tasks).unwrap_or(u32::MAX);
        let most = u32::MAX - 2 * interval_queue_task_contract::MAX_ADD as u32;
        let behind = |sequence: u32| Some(if sequence > most { 0 } else { sequence.saturating_add(tasks) });
        self.sequence.fetch_update(Ordering::Relaxed, Ordering::Relaxed, behind).unwrap_or_default()
    }

    pub(crate) fn learn(&self, settings: &Settings) {
        *self.settings() = settings.clone();
    }

    /// Within `COMMAND_TIMEOUT`. A panic of the store becomes an error.
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

    /// Retries until `timeout` has passed. Errors name the call as `what`.
    pub(crate) async fn command_with_retries(&self, what: &str, command: Command) -> Result<Reply, Error> {
        self.retry(what, || command.clone()).await
    }

    /// Makes the command anew for each try: an `Add` contains its age.
    pub(crate) async fn retry(&self, what: &str, mut make: impl FnMut() -> Command) -> Result<Reply, Error> {
        let mut command = make();
        command.check()?;
        let began = self.host.now();
        let mut delays = retries(MAX_DELAY, self.host.random());
        let mut may_have_happened = false;
        loop {
            let error = match self.command(command).await {
                Ok(reply) => return Ok(reply),
                Err(error) if !error.is_retryable() => return Err(error.into()),
                Err(error) => error,
            };
            may_have_happened |= !error.has_no_effect();
            let delay = delays.next().unwrap_or(MAX_DELAY);
            let passed = self.host.now().saturating_duration_since(began);
            if passed + delay > self.timeout {
                return Err(match may_have_happened {
                    true => Error::unanswered(what, passed, error),
                    false => Error::not_happened(what, passed, error),
                });
            }
            host::sleep(&*self.host, delay).await;
            command = make();
        }
    }
}

/// For a user's call, before jitter.
const MAX_DELAY: Duration = Duration::from_secs(2);

pub(crate) fn unexpected(reply: &Reply) -> Error {
    Error::new(ErrorKind::Store, format!("the store gave an answer of another kind: {reply:?}"))
}
