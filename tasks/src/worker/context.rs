//! What a handler is given of its run.

use std::{
    fmt,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use interval_queue_task_contract::{
    Completion, Input, Json, Kind, Leased, Outcome, Policy, Progress, State, TaskId, Token, WorkerId,
};
use interval_queue_worker::{Because, RunId};
use serde::{Serialize, de::DeserializeOwned};
use tokio::sync::watch;

use super::core::Core;
use crate::{
    TaskQueue,
    error::{Error, ErrorKind},
    looking::parse,
};

/// The longest text of progress, in characters.
const MAX_TEXT: usize = 500;

/// What a handler knows of its run: the task, the token, the state of the application, whether it is to stop, and the
/// queue, to add what it has found.
pub struct Context<S = ()> {
    state: Arc<S>,
    pub(super) run: Arc<Run>,
}

/// A run that has begun.
pub(super) struct Run {
    pub(super) leased: Leased,
    pub(super) core: Arc<Core>,
    pub(super) stop: watch::Receiver<Option<Because>>,
}

impl Run {
    pub(super) fn id(&self) -> RunId {
        RunId { id: self.leased.task.id, token: self.leased.task.token }
    }
}

impl<S> Context<S> {
    pub(super) fn new(state: Arc<S>, run: Arc<Run>) -> Self {
        Self { state, run }
    }

    /// The state of the application, as it was given to the [worker](crate::WorkerBuilder::state).
    pub fn state(&self) -> &S {
        &self.state
    }

    /// The task.
    pub fn id(&self) -> TaskId {
        self.run.leased.task.id
    }

    /// Its kind.
    pub fn kind(&self) -> &Kind {
        &self.run.leased.task.kind
    }

    /// Its payload as it is stored.
    pub fn payload(&self) -> &Json {
        &self.run.leased.payload
    }

    /// All that is stored of it but the payload, as it was when it was leased.
    pub fn task(&self) -> &interval_queue_task_contract::Task {
        &self.run.leased.task
    }

    /// What holds for its failures.
    pub fn policy(&self) -> &Policy {
        &self.run.leased.policy
    }

    /// Which attempt this is, from 1 on: one more than the runs that failed. Runs that were given back do not count.
    pub fn attempt(&self) -> u32 {
        self.run.leased.task.failures.saturating_add(1)
    }

    /// The fencing token of this run: it rises with each run of the task. To hand on to whatever can refuse an older
    /// one.
    pub fn token(&self) -> Token {
        self.run.leased.task.token
    }

    /// The time of the store's clock by which it is to be done, if it has a deadline.
    pub fn deadline(&self) -> Option<SystemTime> {
        self.run.leased.task.deadline.map(|deadline| UNIX_EPOCH + deadline.to_duration())
    }

    /// The instant that it stands for, if a [schedule](crate::Schedule) has made it: that is earlier than now, by much
    /// if no worker was there.
    pub fn scheduled(&self) -> Option<SystemTime> {
        self.run.leased.task.schedule.as_ref().map(|nominal| UNIX_EPOCH + nominal.at.to_duration())
    }

    /// Ends when the run is to stop: the task was cancelled, its deadline has passed, somebody else may have it, or
    /// the worker stops and its [grace](crate::WorkerBuilder::grace) is over. A handler that cares returns
    /// [`TaskError::released`](crate::TaskError::released) soon; else it is dropped five seconds later, or at once if
    /// somebody else may have the task.
    pub async fn cancelled(&self) {
        let mut stop = self.run.stop.clone();
        if stop.wait_for(Option::is_some).await.is_err() {
            // Nobody can tell it any more.
            std::future::pending::<()>().await;
        }
    }

    /// Whether the run is to stop.
    pub fn is_cancelled(&self) -> bool {
        self.run.stop.borrow().is_some()
    }

    /// Says how far it is: so much of how much, if that is known. The store hears of it with the next step of the
    /// worker, a few seconds later at most.
    pub fn progress(&self, done: u64, total: u64, text: impl fmt::Display) {
        let text = text.to_string().chars().take(MAX_TEXT).collect();
        self.run.core.machine().progress(self.run.id(), Progress { done, total, text });
    }

    /// The results of the tasks that it waited for.
    ///
    /// # Errors
    ///
    /// [`Store`](ErrorKind::Store) and [`Unanswered`](ErrorKind::Unanswered) if the store fails.
    pub async fn inputs(&self) -> Result<Inputs, Error> {
        let mut all = Vec::new();
        if !self.run.leased.task.has_edges {
            return Ok(Inputs(all));
        }
        let mut after = None;
        loop {
            let page = self.queue().inputs(self.id(), after).await?;
            all.extend(page.inputs);
            after = page.next;
            if after.is_none() {
                return Ok(Inputs(all));
            }
        }
    }

    /// The queue, to add more work.
    pub fn queue(&self) -> &TaskQueue {
        &self.run.core.queue
    }

    /// The worker that runs it.
    pub fn worker(&self) -> WorkerId {
        self.run.core.machine().identity.worker
    }

    /// That the run is done, with this result: to complete it within a transaction of one's own. What completing gives is
    /// what the handler returns once that is committed. See [together with your own rows](crate::_guide::together).
    ///
    /// # Errors
    ///
    /// [`Invalid`](ErrorKind::Invalid) for a result that is no JSON.
    pub fn done<R: Serialize + ?Sized>(&self, result: &R) -> Result<Completion, Error> {
        Ok(self.end(Outcome::Done(Json::of(result)?)))
    }

    /// That the task has failed for good, to be completed as what is [`done`](Self::done).
    pub fn failed(&self, why: impl fmt::Display) -> Completion {
        self.end(Outcome::Failed(why.to_string()))
    }

    fn end(&self, outcome: Outcome) -> Completion {
        Completion { id: self.id(), token: self.token(), outcome }
    }

    /// How long the run may take, if its policy says so.
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

/// The results of the tasks that a task waited for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inputs(Vec<Input>);

impl Inputs {
    /// All of them, by the ids of their tasks.
    pub fn iter(&self) -> impl Iterator<Item = &Input> {
        self.0.iter()
    }

    /// The one of this [name](crate::Task::input), or with this id; none: there is none.
    pub fn find(&self, name: &str) -> Option<&Input> {
        let is_it = |input: &&Input| match &input.name {
            Some(own) => own.as_str() == name,
            None => input.up.to_string() == name,
        };
        self.0.iter().find(is_it)
    }

    /// The result of the one of this name.
    ///
    /// # Errors
    ///
    /// [`Missing`](ErrorKind::Missing) if there is none; [`Failed`](ErrorKind::Failed) if that task was not done;
    /// [`Mismatch`](ErrorKind::Mismatch) if its result is of another type.
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
