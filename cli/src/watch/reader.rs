//! Reads the queues that the rounds name, and makes the changes that keys request.

use std::sync::Arc;

use interval_queue::{QueueName, SharedState, task_contract::TaskId};
use tokio::sync::OnceCell;

use super::{
    messages::{Message, Wanted},
    rounds::Task,
};
use crate::{
    args::{StoreArgs, Target},
    exit::{Failure, NOINPUT},
    target::{bounded, change, read_queue},
    tasks::{Summary, Tasks, TextPage, failures_text, pause_or_resume},
};

/// The store. It is opened when it is first needed and can be reached.
#[derive(Clone, Debug)]
pub(crate) struct Reader {
    store: StoreArgs,
    opened: Arc<OnceCell<Arc<dyn SharedState>>>,
    /// The stored tasks. `None`: the store keeps none.
    tasks: Arc<OnceCell<Option<Tasks>>>,
}

impl Reader {
    pub(crate) fn new(store: StoreArgs) -> Self {
        Self { store, opened: Arc::default(), tasks: Arc::default() }
    }

    async fn state(&self) -> Result<&dyn SharedState, Failure> {
        Ok(&**self.opened.get_or_try_init(|| self.store.shared_state()).await?)
    }

    /// Reads. An unreachable store is news. Only a permanent failure that concerns all queues is an
    /// error.
    pub(crate) async fn read(self, task: Task) -> Result<Message, Failure> {
        let state = match self.state().await {
            Ok(state) => state,
            Err(failure) => return outage(failure),
        };
        let read = match &task {
            Task::List => self.names(state).await,
            Task::Read(queue) | Task::ReadCounts(queue) => {
                read_queue(state, queue).await.map(|found| Message::Read(queue.clone(), found))
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
    async fn names(&self, state: &dyn SharedState) -> Result<Message, Failure> {
        let mut names = bounded(async { Ok(state.queues().await?) }).await?;
        if let Ok(Some(tasks)) = self.tasks().await {
            names.extend(tasks.queues().await?);
            names.sort();
            names.dedup();
        }
        Ok(Message::Names(names))
    }

    /// The stored tasks, if the store keeps any.
    async fn tasks(&self) -> Result<Option<&Tasks>, Failure> {
        let open = || Tasks::open_store_if_kept(&self.store);
        Ok(self.tasks.get_or_try_init(open).await?.as_ref())
    }

    /// Adds the status of the stored tasks of the queue to `read`. If `whole` is set, runs and
    /// upcoming tasks are included.
    async fn with_tasks(&self, queue: QueueName, read: Message, whole: bool) -> Message {
        let found = async {
            let Some(tasks) = self.tasks().await? else { return Ok(None) };
            let pace = match &read {
                Message::Read(_, pace) => pace.as_ref(),
                _ => None,
            };
            let tasks = tasks.of(&queue);
            if whole {
                Summary::find(&tasks, pace).await
            } else {
                Summary::find_without_runs(&tasks, pace).await
            }
        };
        let found = found.await.map_err(|failure: Failure| failure.message);
        Message::WithTasks(queue, found.map(|found| found.map(Box::new)), Box::new(read))
    }

    /// Reads the page of a task.
    pub(crate) async fn open(self, queue: QueueName, id: TaskId) -> Message {
        let target = Target { store: self.store.clone(), queue: queue.clone() };
        let page = match self.tasks().await {
            Ok(Some(tasks)) => {
                TextPage::of(&target, &tasks.of(&queue), id).await.map_err(|failure| failure.message)
            }
            Ok(None) => Err("the store keeps no tasks".into()),
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
            let state = self.state().await?;
            let tasks = pause_or_resume(&target, wanted.of_tasks()).await?;
            match change(state, &queue, wanted.change()).await {
                // A queue of stored tasks need not have a rate.
                Err(failure) if tasks && failure.code == NOINPUT => Ok(()),
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
