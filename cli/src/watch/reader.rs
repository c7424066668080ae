//! Reads the queues that the rounds name, and makes the changes that keys request.

use std::sync::Arc;

use interval_queue::{Operators, QueueName};
use interval_queue_documents::{Failures, Worker};
use interval_queue_tasks::{Overview, Selector, State, TaskId, TaskQueue, TaskQueues};
use tokio::sync::OnceCell;

use super::{
    messages::{Message, Wanted},
    queue_state::{Details, QueueState},
    rounds::Task,
};
use crate::{
    args::{StoreArgs, Target},
    change::pause_or_resume,
    exit::{Failure, NOINPUT},
    target::{bounded, snapshot},
    tasks::{Summary, TextPage, failures_text},
};

/// Failed and unfinished tasks up to which errors are grouped repeatedly.
const MAX_GROUPED: u64 = 10_000;
/// Stored tasks up to which errors are grouped repeatedly: all are examined.
const MAX_EXAMINED: u64 = 50_000;

/// Opened when it is first needed and can be reached.
#[derive(Clone, Debug)]
pub(crate) struct Reader {
    store: StoreArgs,
    operators: Arc<OnceCell<Operators>>,
    /// The stored tasks. `None`: the store keeps none.
    tasks: Arc<OnceCell<Option<TaskQueues>>>,
}

impl Reader {
    pub(crate) fn new(store: StoreArgs) -> Self {
        Self { store, operators: Arc::default(), tasks: Arc::default() }
    }

    async fn operators(&self) -> Result<&Operators, Failure> {
        self.operators.get_or_try_init(|| self.store.operators()).await
    }

    /// An unreachable store is an outage. Only a permanent failure that concerns all queues is an
    /// error.
    pub(crate) async fn read(self, task: Task) -> Result<Message, Failure> {
        let read = match self.operators().await {
            Ok(operators) => match task {
                Task::List => self.names(operators).await,
                Task::Read(queue) => self.state(operators, queue, true).await,
                Task::ReadCounts(queue) => self.state(operators, queue, false).await,
                Task::Details(queue) => bounded(self.details(queue)).await,
            },
            Err(failure) => Err(failure),
        };
        match read {
            Err(failure) if failure.passes => Ok(Message::Outage(failure.message)),
            read => read,
        }
    }

    /// The names of all queues with a rate or with stored tasks.
    async fn names(&self, operators: &Operators) -> Result<Message, Failure> {
        let mut names = bounded(async { Ok(operators.names().await?) }).await?;
        if let Ok(Some(tasks)) = self.tasks().await {
            names.extend(bounded(async { Ok(tasks.names().await?) }).await?);
            names.sort();
            names.dedup();
        }
        Ok(Message::Names(names))
    }

    /// The stored tasks, if the store keeps any.
    async fn tasks(&self) -> Result<Option<&TaskQueues>, Failure> {
        let open = || self.store.task_queues();
        Ok(self.tasks.get_or_try_init(open).await?.as_ref())
    }

    /// The stored tasks of a queue. `None`: it has none.
    async fn queue(&self, name: &QueueName) -> Result<Option<(TaskQueue, Overview)>, Failure> {
        match self.tasks().await? {
            Some(tasks) => Ok(tasks.find(name).await?),
            None => Ok(None),
        }
    }

    /// Reads a queue. If `whole` is set, runs and upcoming tasks are included. A part of the queue
    /// that cannot be read does not hide the other part.
    async fn state(&self, operators: &Operators, queue: QueueName, whole: bool) -> Result<Message, Failure> {
        let mut state = QueueState::default();
        match snapshot(&operators.of(&queue)).await {
            Ok(rate) => state.rate = rate,
            Err(failure) if failure.passes => return Err(failure),
            Err(failure) => state.error = Some(failure.message),
        }
        let tasks = async {
            let Some((tasks, overview)) = self.queue(&queue).await? else { return Ok(None) };
            let summary = Summary::of(&overview, state.rate.as_ref());
            if whole { summary.with_runs(&tasks).await.map(Some) } else { Ok(Some(summary)) }
        };
        match bounded(tasks).await {
            Ok(tasks) => state.tasks = tasks,
            Err(failure) if failure.passes => return Err(failure),
            Err(failure) => {
                let error = format!("its stored tasks cannot be read: {}", failure.message);
                state.error.get_or_insert(error);
            }
        }
        Ok(Message::Read(queue, Box::new(state)))
    }

    /// Reads the workers and the failures of a queue.
    async fn details(&self, name: QueueName) -> Result<Message, Failure> {
        let mut details = Details { workers: Vec::new(), failures: None };
        if let Some((queue, overview)) = self.queue(&name).await? {
            let summary = Summary::of(&overview, None);
            let found = queue.workers().await?;
            details.workers = found.iter().map(Worker::of).collect();
            details.workers.sort_by_key(|worker| (worker.lease_left_us.is_none(), worker.since_us));
            let stored: u64 = State::ALL.into_iter().map(|state| summary.in_state(state)).sum();
            if stored <= MAX_EXAMINED && summary.left() + summary.in_state(State::Failed) <= MAX_GROUPED {
                let failed = queue.failures(&Selector::states([State::Failed])).await?;
                details.failures = Some(Failures::from(&failed));
            }
        }
        Ok(Message::Details(name, details))
    }

    pub(crate) async fn open(self, queue: QueueName, id: TaskId) -> Message {
        let target = Target { store: self.store.clone(), queue: queue.clone() };
        let page = match self.queue(&queue).await {
            Ok(Some((tasks, _))) => {
                TextPage::of(&target, &tasks, id).await.map_err(|failure| failure.message)
            }
            Ok(None) => Err("the queue has no tasks".into()),
            Err(failure) => Err(failure.message),
        };
        Message::Opened(page.map_err(|error| format!("task {id} cannot be opened: {error}")))
    }

    pub(crate) async fn failures(self, queue: QueueName) -> Message {
        let target = Target { store: self.store.clone(), queue };
        let page = match failures_text(&target).await {
            Ok(Some(about)) => Ok(TextPage { about, ..TextPage::default() }),
            Ok(None) => Err("no stored task has failed".into()),
            Err(failure) => Err(format!("the failures cannot be read: {}", failure.message)),
        };
        Message::Opened(page)
    }

    pub(crate) async fn change(self, queue: QueueName, wanted: Wanted) -> Message {
        let target = Target { store: self.store.clone(), queue: queue.clone() };
        let changed = async {
            let operator = self.operators().await?.of(&queue);
            let has_tasks = pause_or_resume(&target, wanted == Wanted::Pause).await?;
            let changed = match wanted {
                Wanted::Pause => target.changed(operator.pause()).await,
                Wanted::Resume => target.changed(operator.resume()).await,
            };
            match changed {
                // A queue of stored tasks need not have a rate.
                Err(failure) if has_tasks && failure.code == NOINPUT => Ok(()),
                changed => changed.map(drop),
            }
        };
        let changed = changed.await.map_err(|failure| match failure.code {
            NOINPUT => "it does not exist".into(),
            _ => failure.message,
        });
        Message::Changed(queue, wanted, changed)
    }
}
