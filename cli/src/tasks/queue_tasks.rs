//! Reads and changes of the tasks of one queue.

use std::{sync::Arc, time::Duration};

use interval_queue::{
    Micros, QueueName, StateErrorKind,
    task_contract::{
        Change, Command, Kind, MAX_PAGE, Overview, Page, Read, Reply, Schedule, Selector, Stored, Task,
        TaskId, TaskStore, Times, Verb, Worker,
    },
};
use interval_queue_tasks::TaskQueue;

use super::task_args::SelectorArgs;
use crate::{
    args::{StoreArgs, Target},
    exit::{CONFIG, Failure, NOINPUT, SOFTWARE},
    target::bounded,
};

/// How long a library queue that is opened here retries if the store does not answer.
const OPEN_TIMEOUT: Duration = Duration::from_secs(60);

/// The tasks of one queue.
#[derive(Clone, Debug)]
pub(crate) struct Tasks {
    store: Arc<dyn TaskStore>,
    pub(crate) queue: QueueName,
}

impl Tasks {
    pub(crate) async fn open(target: &Target) -> Result<Self, Failure> {
        Ok(Self { store: target.store.tasks().await?, queue: target.queue.clone() })
    }

    /// Opens the tasks of the queue. Returns `None` if the store keeps no tasks.
    pub(crate) async fn open_if_kept(target: &Target) -> Result<Option<Self>, Failure> {
        match Self::open(target).await {
            Err(failure) if [CONFIG, NOINPUT].contains(&failure.code) => Ok(None),
            opened => opened.map(Some),
        }
    }

    /// As [`open_if_kept`](Self::open_if_kept), without a queue, see [`of`](Self::of).
    pub(crate) async fn open_store_if_kept(store: &StoreArgs) -> Result<Option<Self>, Failure> {
        let queue = QueueName::new("-").unwrap_or_else(|_| unreachable!("it is a name"));
        Self::open_if_kept(&Target { store: store.clone(), queue }).await
    }

    /// The queues of the store that have tasks.
    pub(crate) async fn queues(&self) -> Result<Vec<QueueName>, Failure> {
        bounded(async { Ok(self.store.queues().await?) }).await
    }

    /// The tasks of another queue of the same store.
    pub(crate) fn of(&self, queue: &QueueName) -> Self {
        Self { queue: queue.clone(), ..self.clone() }
    }

    /// Sends a command, with one retry: an idle connection may have died. A retried command has its
    /// effect once.
    pub(super) async fn query(&self, command: Command) -> Result<Reply, Failure> {
        // For a link, "not found" may concern the upstream task instead of the queue.
        let is_link = matches!(&command, Command::Change(Change::Tasks(change)) if matches!(change.verb, Verb::Link(_)));
        let replied = bounded(async {
            Ok(match self.store.apply(&self.queue, command.clone()).await {
                Err(error) if error.is_retryable() => self.store.apply(&self.queue, command).await,
                reply => reply,
            })
        });
        replied.await?.map_err(|error| match error.kind() {
            StateErrorKind::NotFound if !is_link => self.missing(),
            _ => Failure::from(error),
        })
    }

    /// Changes the queue for all workers.
    pub(crate) async fn change(&self, change: Change) -> Result<(), Failure> {
        match self.query(Command::Change(change)).await {
            Ok(Reply::Changed(_)) => Ok(()),
            other => Err(unexpected(other)),
        }
    }

    /// Whether the queue has tasks, settings or workers.
    pub(crate) async fn is_there(&self) -> Result<bool, Failure> {
        match self.now().await {
            Ok(_) => Ok(true),
            Err(failure) if failure.code == NOINPUT => Ok(false),
            Err(failure) => Err(failure),
        }
    }

    /// The error that the queue has no tasks.
    pub(crate) fn missing(&self) -> Failure {
        no_tasks(&self.queue)
    }

    /// The store's clock.
    pub(crate) async fn now(&self) -> Result<Micros, Failure> {
        match self.query(Command::Read(Read::Clock)).await {
            Ok(Reply::Clock(now)) => Ok(now),
            other => Err(unexpected(other)),
        }
    }

    /// Reads the overview of the queue. Returns `None` if the queue has never had tasks.
    pub(crate) async fn overview(&self) -> Result<Option<Overview>, Failure> {
        match self.query(Command::Read(Read::Overview)).await {
            Ok(Reply::Overview(overview)) => Ok(Some(*overview)),
            Err(failure) if failure.code == NOINPUT => Ok(None),
            other => Err(unexpected(other)),
        }
    }

    pub(super) async fn workers(&self) -> Result<Vec<Worker>, Failure> {
        match self.query(Command::Read(Read::Workers)).await {
            Ok(Reply::Workers(workers)) => Ok(workers),
            other => Err(unexpected(other)),
        }
    }

    pub(super) async fn schedules(&self) -> Result<Vec<Schedule>, Failure> {
        match self.query(Command::Read(Read::Schedules)).await {
            Ok(Reply::Schedules(schedules)) => Ok(schedules),
            other => Err(unexpected(other)),
        }
    }

    /// The most urgent ready tasks, in the order of their starts.
    pub(super) async fn upcoming(&self, limit: u32) -> Result<Vec<Task>, Failure> {
        match self.query(Command::Read(Read::Upcoming(limit))).await {
            Ok(Reply::Upcoming(tasks)) => Ok(tasks),
            other => Err(unexpected(other)),
        }
    }

    /// Waiting and running times of a kind, by hour.
    pub(super) async fn times(&self, kind: &Kind, from: Micros) -> Result<Vec<Times>, Failure> {
        match self.query(Command::Read(Read::Times { kind: kind.clone(), from })).await {
            Ok(Reply::Times(times)) => Ok(times),
            other => Err(unexpected(other)),
        }
    }

    pub(super) async fn task(&self, id: TaskId) -> Result<Option<Stored>, Failure> {
        match self.query(Command::Read(Read::Tasks(vec![id]))).await {
            Ok(Reply::Tasks(tasks)) => Ok(tasks.into_iter().next().flatten()),
            other => Err(unexpected(other)),
        }
    }

    /// Reads a task.
    ///
    /// # Errors
    ///
    /// The task does not exist.
    pub(super) async fn existing(&self, id: TaskId) -> Result<Stored, Failure> {
        let missing = || {
            let text = format!("there is no task {id} in queue {:?}", self.queue.as_str());
            Failure::new(NOINPUT, format!("{text}: it was never added, or was deleted after its retention"))
        };
        self.task(id).await?.ok_or_else(missing)
    }

    /// The stored ones among these tasks, sorted by id, without payloads and edges.
    pub(super) async fn rows(&self, mut ids: Vec<TaskId>) -> Result<Vec<Task>, Failure> {
        ids.sort();
        let mut rows = Vec::new();
        for ids in ids.chunks(MAX_PAGE as usize) {
            let page = self.page(&Selector::ids(ids.to_vec()), None, MAX_PAGE, false).await?;
            rows.extend(page.tasks.into_iter().map(|stored| stored.task));
        }
        Ok(rows)
    }

    /// The stored ones among these tasks, as many as fit into one reply.
    pub(super) async fn tasks(&self, ids: Vec<TaskId>) -> Result<Vec<Stored>, Failure> {
        match self.query(Command::Read(Read::Tasks(ids))).await {
            Ok(Reply::Tasks(tasks)) => Ok(tasks.into_iter().flatten().collect()),
            other => Err(unexpected(other)),
        }
    }

    /// Whether some task is selected.
    pub(crate) async fn has_some(&self, selector: Selector) -> Result<bool, Failure> {
        Ok(!self.page(&selector, None, 1, false).await?.tasks.is_empty())
    }

    pub(super) async fn page(
        &self,
        selector: &Selector,
        after: Option<TaskId>,
        limit: u32,
        bodies: bool,
    ) -> Result<Page, Failure> {
        let page = Read::Page { selector: selector.clone(), after, limit, bodies };
        match self.query(Command::Read(page)).await {
            Ok(Reply::Page(page)) => Ok(page),
            other => Err(unexpected(other)),
        }
    }

    /// Makes the selector of the command line. Also returns the time on the store's clock, by which
    /// ages are measured.
    pub(super) async fn selector(&self, args: &SelectorArgs) -> Result<(Selector, Micros), Failure> {
        let now = self.now().await?;
        let before = args.older_than.map(|age| now - Micros::from_duration(age));
        let states = args.states.clone();
        // The age of an ended task is counted from its end.
        let ended = !states.is_empty() && states.iter().all(|state| state.is_ended());
        let selector = Selector {
            ids: args.ids.clone(),
            kinds: args.kinds.clone(),
            states,
            key: args.key.clone(),
            unique: args.unique.clone(),
            tag: args.tag.clone().or_else(|| args.flow.as_ref()?.selector().tag),
            worker: args.worker,
            error: args.error.clone(),
            added_from: None,
            added_before: before.filter(|_| !ended),
            ended_before: before.filter(|_| ended),
        };
        Ok((selector, now))
    }
}

/// The error that a queue has no stored tasks.
fn no_tasks(queue: &QueueName) -> Failure {
    let queue = queue.as_str();
    let text = format!("queue {queue:?} has no tasks in this store: `interval-queue add` adds some");
    Failure::new(NOINPUT, text)
}

/// The failure, or the failure for a reply of another type.
pub(super) fn unexpected(reply: Result<Reply, Failure>) -> Failure {
    match reply {
        Err(failure) => failure,
        Ok(_) => Failure::new(SOFTWARE, "the store returned a reply of another type"),
    }
}

/// Opens the queue as a library does. Creates the queue if it does not exist.
pub(crate) async fn open_queue(target: &Target) -> Result<TaskQueue, Failure> {
    let store = target.store.store().await?;
    let builder = TaskQueue::builder(target.queue.as_str()).timeout(OPEN_TIMEOUT);
    builder.open(&store).await.map_err(|error| Failure::from(&error))
}

/// Pauses or resumes the stored tasks of a queue. Returns whether it has any.
pub(crate) async fn pause_or_resume(target: &Target, change: Change) -> Result<bool, Failure> {
    let Some(tasks) = Tasks::open_if_kept(target).await? else { return Ok(false) };
    if tasks.is_there().await? {
        tasks.query(Command::Change(change)).await?;
        return Ok(true);
    }
    Ok(false)
}
