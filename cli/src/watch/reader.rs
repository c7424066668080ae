//! Talks to the store: reads what the rounds ask for, and makes the one change that a key can ask for.

use std::sync::Arc;

use interval_queue::{QueueName, SharedState, task_contract::TaskId};
use tokio::sync::OnceCell;

use super::{
    news::{News, Wanted},
    rounds::Task,
};
use crate::{
    args::{StoreArgs, Target},
    exit::{Failure, NOINPUT},
    target::{bounded, change, look},
    tasks::{Summary, Tasks, TextPage, pause_or_resume, what_failed},
};

/// The store, opened when it is first needed and can be reached.
#[derive(Clone, Debug)]
pub(crate) struct Reader {
    store: StoreArgs,
    opened: Arc<OnceCell<Arc<dyn SharedState>>>,
    /// The stored tasks; none: the store keeps none.
    tasks: Arc<OnceCell<Option<Tasks>>>,
}

impl Reader {
    pub(crate) fn new(store: StoreArgs) -> Self {
        Self { store, opened: Arc::default(), tasks: Arc::default() }
    }

    async fn state(&self) -> Result<&dyn SharedState, Failure> {
        Ok(&**self.opened.get_or_try_init(|| self.store.shared_state()).await?)
    }

    /// Reads. That the store cannot be reached is news; what will not pass by itself is a failure, unless it
    /// concerns one queue alone.
    pub(crate) async fn read(self, task: Task) -> Result<News, Failure> {
        let state = match self.state().await {
            Ok(state) => state,
            Err(failure) => return outage(failure),
        };
        let read = match &task {
            Task::List => self.names(state).await,
            Task::Look(queue) | Task::Glance(queue) => {
                look(state, queue).await.map(|found| News::Look(queue.clone(), found))
            }
        };
        match (read, task) {
            (Err(failure), Task::Look(queue) | Task::Glance(queue)) if !failure.passes => {
                Ok(News::Unreadable(queue, failure.message))
            }
            (Err(failure), _) => outage(failure),
            (Ok(news), Task::Look(queue)) => Ok(self.with_tasks(queue, news, true).await),
            (Ok(news), Task::Glance(queue)) => Ok(self.with_tasks(queue, news, false).await),
            (Ok(news), Task::List) => Ok(news),
        }
    }

    /// The queues that have a pace, and those that have stored tasks.
    async fn names(&self, state: &dyn SharedState) -> Result<News, Failure> {
        let mut names = bounded(async { Ok(state.queues().await?) }).await?;
        if let Ok(Some(tasks)) = self.tasks().await {
            names.extend(tasks.queues().await?);
            names.sort();
            names.dedup();
        }
        Ok(News::Names(names))
    }

    /// The stored tasks, if the store keeps any.
    async fn tasks(&self) -> Result<Option<&Tasks>, Failure> {
        let open = || Tasks::open_store_if_kept(&self.store);
        Ok(self.tasks.get_or_try_init(open).await?.as_ref())
    }

    /// The same with how the stored tasks of the queue stand; with all that runs and is next if it is `whole`.
    async fn with_tasks(&self, queue: QueueName, look: News, whole: bool) -> News {
        let found = async {
            let Some(tasks) = self.tasks().await? else { return Ok(None) };
            let pace = match &look {
                News::Look(_, pace) => pace.as_ref(),
                _ => None,
            };
            let tasks = tasks.of(&queue);
            if whole { Summary::find(&tasks, pace).await } else { Summary::glance(&tasks, pace).await }
        };
        let found = found.await.map_err(|failure: Failure| failure.message);
        News::WithTasks(queue, found.map(|found| found.map(Box::new)), Box::new(look))
    }

    /// All that is to be said of a task.
    pub(crate) async fn open(self, queue: QueueName, id: TaskId) -> News {
        let target = Target { store: self.store.clone(), queue: queue.clone() };
        let page = match self.tasks().await {
            Ok(Some(tasks)) => {
                TextPage::of(&target, &tasks.of(&queue), id).await.map_err(|failure| failure.message)
            }
            Ok(None) => Err("the store keeps no tasks".into()),
            Err(failure) => Err(failure.message),
        };
        News::Opened(page.map_err(|said| format!("task {id} cannot be opened: {said}")))
    }

    /// What failed, by what the errors say.
    pub(crate) async fn failures(self, queue: QueueName) -> News {
        let target = Target { store: self.store.clone(), queue };
        let page = match what_failed(&target).await {
            Ok(Some(about)) => Ok(TextPage { about, ..TextPage::default() }),
            Ok(None) => Err("no stored task has failed".into()),
            Err(failure) => Err(format!("the failures cannot be read: {}", failure.message)),
        };
        News::Opened(page)
    }

    /// Pauses or resumes a queue.
    pub(crate) async fn change(self, queue: QueueName, wanted: Wanted) -> News {
        let target = Target { store: self.store.clone(), queue: queue.clone() };
        let changed = async {
            let state = self.state().await?;
            let tasks = pause_or_resume(&target, wanted.of_tasks()).await?;
            match change(state, &queue, wanted.change()).await {
                // A queue of stored tasks need not have a pace.
                Err(failure) if tasks && failure.code == NOINPUT => Ok(()),
                changed => changed.map(drop),
            }
        };
        match changed.await {
            Ok(_) => News::Done(queue, wanted),
            Err(failure) if failure.code == NOINPUT => News::NotDone(queue, "it does not exist".into()),
            Err(failure) => News::NotDone(queue, failure.message),
        }
    }
}

fn outage(failure: Failure) -> Result<News, Failure> {
    if failure.passes { Ok(News::Outage(failure.message)) } else { Err(failure) }
}
