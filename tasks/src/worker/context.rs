//! A run as its handler sees it.

use std::{
    fmt,
    sync::{Arc, OnceLock},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use interval_queue_task_contract::{
    Completion, Input, Json, Kind, Leased, MAX_LOG_TEXT, Outcome, Policy, Progress, State, TaskId, Token,
    WorkerId,
};
use interval_queue_worker::{Because, RunId};
use serde::{Serialize, de::DeserializeOwned};
use tokio::sync::watch;

use super::core::Core;
use crate::{
    TaskQueue,
    error::{Error, ErrorKind},
    queries::parse,
};

/// In characters. Longer texts of progress, and lines of a log, are cut.
const MAX_TEXT: usize = MAX_LOG_TEXT;

/// A run as its handler sees it: the task, its token, the application's state, the stop signal, and
/// the queue to add tasks to.
pub struct Context<S = ()> {
    state: Arc<S>,
    pub(super) run: Arc<Run>,
}

pub(super) struct Run {
    pub(super) leased: Leased,
    /// Set before the handler is called, unless there is no codec.
    pub(super) payload: OnceLock<Json>,
    pub(super) core: Arc<Core>,
    pub(super) stop: watch::Receiver<Option<Because>>,
}

impl Run {
    pub(super) fn id(&self) -> RunId {
        RunId { id: self.leased.task.id, token: self.leased.task.token }
    }

    pub(super) fn payload(&self) -> &Json {
        self.payload.get().unwrap_or(&self.leased.payload)
    }
}

impl<S> Context<S> {
    pub(super) fn new(state: Arc<S>, run: Arc<Run>) -> Self {
        Self { state, run }
    }

    /// The state given to [`WorkerBuilder::state`](crate::WorkerBuilder::state).
    pub fn state(&self) -> &S {
        &self.state
    }

    /// The task's id.
    pub fn id(&self) -> TaskId {
        self.run.leased.task.id
    }

    /// The task's kind.
    pub fn kind(&self) -> &Kind {
        &self.run.leased.task.kind
    }

    /// The payload as it was added.
    pub fn payload(&self) -> &Json {
        self.run.payload()
    }

    /// The task without its payload, as of the lease.
    pub fn task(&self) -> &interval_queue_task_contract::Task {
        &self.run.leased.task
    }

    /// The retry policy of the task.
    pub fn policy(&self) -> &Policy {
        &self.run.leased.policy
    }

    /// The attempt, from 1: one more than the failed runs. Released runs do not count.
    pub fn attempt(&self) -> u32 {
        self.run.leased.task.failures.saturating_add(1)
    }

    /// The fencing token, which rises with each run of the task. Pass it to systems that can reject
    /// an older one.
    pub fn token(&self) -> Token {
        self.run.leased.task.token
    }

    /// The task's deadline, on the store's clock.
    pub fn deadline(&self) -> Option<SystemTime> {
        self.run.leased.task.deadline.map(|deadline| UNIX_EPOCH + deadline.to_duration())
    }

    /// The nominal instant, if a [schedule](crate::Schedule) made the task. It can be long past if
    /// no worker polled.
    pub fn scheduled(&self) -> Option<SystemTime> {
        self.run.leased.task.schedule.as_ref().map(|nominal| UNIX_EPOCH + nominal.at.to_duration())
    }

    /// The W3C `traceparent` of the span in which the task was added, if one was stored.
    pub fn traceparent(&self) -> Option<&str> {
        self.run.leased.task.trace.as_ref().map(|trace| trace.as_str())
    }

    /// Completes when the run must stop: the task was cancelled, its deadline or timeout has
    /// passed, another worker may have it, or the worker's [grace](crate::WorkerBuilder::grace) is
    /// over. Return [`TaskError::released`](crate::TaskError::released) then. Else the run is
    /// dropped after five seconds, or at once if another worker may have the task.
    pub async fn cancelled(&self) {
        let mut stop = self.run.stop.clone();
        if stop.wait_for(Option::is_some).await.is_err() {
            // The sender is gone: no signal can come.
            std::future::pending::<()>().await;
        }
    }

    /// Whether the run must stop.
    pub fn is_cancelled(&self) -> bool {
        self.run.stop.borrow().is_some()
    }

    /// Reports progress; `total` 0: unknown. The worker's next poll stores it, within a fifth of
    /// the lease.
    pub fn progress(&self, done: u64, total: u64, text: impl fmt::Display) {
        let text = text.to_string().chars().take(MAX_TEXT).collect();
        self.run.core.machine().progress(self.run.id(), Progress { done, total, text });
    }

    /// Writes each line of the text that is not blank to the log of the run, which is stored with
    /// the task: at most the last 64 lines of a run, each cut to 500 characters, and 64 KiB of a
    /// task. The worker's next poll stores them: with the end of the run, or within a fifth of the
    /// lease. [`Stored::log`](crate::Stored::log) has them.
    pub fn log(&self, text: impl fmt::Display) {
        let (text, core) = (text.to_string(), &self.run.core);
        let line = |line: &str| line.replace('\r', " ").chars().take(MAX_TEXT).collect::<String>();
        let lines: Vec<_> = text.lines().filter(|text| !text.trim().is_empty()).map(line).collect();
        let (now, id) = (core.now(), self.run.id());
        let mut machine = core.machine();
        lines.into_iter().for_each(|line| machine.log(id, now, line));
    }

    /// The results of the task's upstreams.
    ///
    /// # Errors
    ///
    /// [`Store`](ErrorKind::Store) and [`Unanswered`](ErrorKind::Unanswered) if the store fails;
    /// [`Codec`](ErrorKind::Codec) if a result cannot be decoded.
    pub async fn inputs(&self) -> Result<Inputs, Error> {
        let mut all = Vec::new();
        if !self.run.leased.task.has_edges {
            return Ok(Inputs(all));
        }
        let mut after = None;
        loop {
            let page = self.queue().inputs(self.id(), after).await?;
            for input in page.inputs {
                all.push(self.queue().shared.codec.decode_input(input)?);
            }
            after = page.next;
            if after.is_none() {
                return Ok(Inputs(all));
            }
        }
    }

    /// The task's queue, to add more tasks.
    pub fn queue(&self) -> &TaskQueue {
        &self.run.core.queue
    }

    /// The worker that runs the task.
    pub fn worker(&self) -> WorkerId {
        self.run.core.machine().identity.worker
    }

    /// The run's successful end, to complete it within your own transaction. After the commit,
    /// return the [`Completed`](crate::Completed) that completing gave. See
    /// [transactions](crate::_guide::transactions).
    ///
    /// # Errors
    ///
    /// [`Invalid`](ErrorKind::Invalid) if the result is not JSON; [`Codec`](ErrorKind::Codec) if the
    /// queue's codec does not encode it.
    pub fn done<R: Serialize + ?Sized>(&self, result: &R) -> Result<Completion, Error> {
        let result = self.queue().shared.codec.encode("the result", Json::of(result)?)?;
        Ok(self.end(Outcome::Done(result)))
    }

    /// The task's failure for good, to be completed like [`done`](Self::done).
    pub fn failed(&self, why: impl fmt::Display) -> Completion {
        self.end(Outcome::Failed(why.to_string()))
    }

    fn end(&self, outcome: Outcome) -> Completion {
        Completion { id: self.id(), token: self.token(), outcome }
    }

    /// How long the run may take. `None`: unlimited.
    pub fn timeout(&self) -> Option<Duration> {
        self.run.leased.policy.timeout.map(|timeout| timeout.to_duration())
    }
}

impl<S> Clone for Context<S> {
    fn clone(&self) -> Self {
        Self { state: self.state.clone(), run: self.run.clone() }
    }
}

impl<S> fmt::Debug for Context<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").field("run", &self.run.id()).finish_non_exhaustive()
    }
}

/// The results of a task's upstreams.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inputs(Vec<Input>);

impl Inputs {
    /// All inputs, by task id.
    pub fn iter(&self) -> impl Iterator<Item = &Input> {
        self.0.iter()
    }

    /// The input with this [name](crate::Task::input), or, if it has no name, with this task id.
    pub fn find(&self, name: &str) -> Option<&Input> {
        let is_it = |input: &&Input| match &input.name {
            Some(own) => own.as_str() == name,
            None => input.up.to_string() == name,
        };
        self.0.iter().find(is_it)
    }

    /// The result of the input with this name.
    ///
    /// # Errors
    ///
    /// [`Missing`](ErrorKind::Missing) if there is no such input; [`Failed`](ErrorKind::Failed) if
    /// its task is not done; [`Mismatch`](ErrorKind::Mismatch) if its result has another type.
    pub fn get<T: DeserializeOwned>(&self, name: &str) -> Result<T, Error> {
        let input = self.find(name);
        let input =
            input.ok_or_else(|| Error::new(ErrorKind::Missing, format!("there is no input {name:?}")))?;
        if input.state != State::Done {
            let text = format!("input {name:?} is no result: its task {} is {}", input.up, input.state);
            return Err(Error::new(ErrorKind::Failed, text));
        }
        let result = input.result.clone().unwrap_or_default();
        parse(&result).map_err(|error| Error::mismatch(format!("input {name:?} is of another type"), error))
    }
}
