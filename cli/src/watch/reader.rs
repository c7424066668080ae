//! Reads the queues that the rounds name, and makes the changes that keys request.

use std::sync::Arc;

use interval_queue::{Operators, QueueName};
use interval_queue_tasks::{Overview, TaskId, TaskQueue, TaskQueues};
use tokio::sync::OnceCell;

use super::{
    messages::{Message, Wanted},
    rounds::Task,
};
use crate::{
    args::{StoreArgs, Target},
    change::pause_or_resume,
    exit::{Failure, NOINPUT},
    target::{bounded, snapshot},
    tasks::{Summary, TextPage, failures_text},
};

/// The store. It is opened when it is first needed and can be reached.
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

    /// Reads. An unreachable store is news. Only a permanent failure that concerns all queues is an
    /// error.
    pub(crate) async fn read(self, task: Task) -> Result<Message, Failure> {
        let operators = match self.operators().await {
            Ok(operators) => operators,
            Err(failure) => return outage(failure),
        };
        let read = match &task {
            Task::List => self.names(operators).await,
            Task::Read(queue) | Task::ReadCounts(queue) => {
                snapshot(&operators.of(queue)).await.map(|found| Message::Read(queue.clone(), found))
            }
        };
        match (read, task) {
            (Err(failure), Task::Read(queue) | Task::ReadCounts(queue)) if !failure.passes => {
                Ok(Message::Unreadable(queue, failure.message))
            }
            (Err(failure), _) => outage(failure),
            (Ok(message), Task::Read(queue)) => Ok(self.with_tasks(queue, message, true).await),
            (Ok(message), Task::ReadCounts(queue)) => Ok(self.with_tasks(queue, message, false).await),
            (Ok(message), Task::List) => Ok(message),
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

    /// Adds the status of the stored tasks of the queue to `read`. If `whole` is set, runs and
    /// upcoming tasks are included.
    async fn with_tasks(&self, queue: QueueName, read: Message, whole: bool) -> Message {
        let found = async {
            let Some((tasks, overview)) = self.queue(&queue).await? else { return Ok(None) };
            let rate = match &read {
                Message::Read(_, rate) => rate.as_ref(),
                _ => None,
            };
            let summary = Summary::of(&overview, rate);
            if whole { summary.with_runs(&tasks).await.map(Some) } else { Ok(Some(summary)) }
        };
        let found = found.await.map_err(|failure: Failure| failure.message);
        Message::WithTasks(queue, found.map(|found| found.map(Box::new)), Box::new(read))
    }

    /// Reads the page of a task.
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

    /// Reads the page of failures.
    pub(crate) async fn failures(self, queue: QueueName) -> Message {
        let target = Target { store: self.store.clone(), queue };
        let page = match failures_text(&target).await {
            Ok(Some(about)) => Ok(TextPage { about, ..TextPage::default() }),
            Ok(None) => Err("no stored task has failed".into()),
            Err(failure) => Err(format!("the failures cannot be read: {}", failure.message)),
        };
        Message::Opened(page)
    }

    /// Pauses or resumes a queue.
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
        match changed.await {
            Ok(_) => Message::Done(queue, wanted),
            Err(failure) if failure.code == NOINPUT => Message::NotDone(queue, "it does not exist".into()),
            Err(failure) => Message::NotDone(queue, failure.message),
        }
    }
}

fn outage(failure: Failure) -> Result<Message, Failure> {
    if failure.passes { Ok(Message::Outage(failure.message)) } else { Err(failure) }
}
