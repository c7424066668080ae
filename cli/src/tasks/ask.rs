//! The store of tasks, asked about one queue.

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

/// How long a library that is opened here asks a state that does not answer.
const PATIENCE: Duration = Duration::from_secs(60);

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

    /// The same if the store keeps tasks.
    pub(crate) async fn open_if_kept(target: &Target) -> Result<Option<Self>, Failure> {
        match Self::open(target).await {
            Err(failure) if [CONFIG, NOINPUT].contains(&failure.code) => Ok(None),
            opened => opened.map(Some),
        }
    }

    /// The same of no queue in particular, see [`of`](Self::of).
    pub(crate) async fn open_store_if_kept(store: &StoreArgs) -> Result<Option<Self>, Failure> {
        let queue = QueueName::new("-").unwrap_or_else(|_| unreachable!("it is a name"));
        Self::open_if_kept(&Target { store: store.clone(), queue }).await
    }

    /// The queues that have tasks in this place.
    pub(crate) async fn queues(&self) -> Result<Vec<QueueName>, Failure> {
        bounded(async { Ok(self.store.queues().await?) }).await
    }

    /// Those of another queue.
    pub(crate) fn of(&self, queue: &QueueName) -> Self {
        Self { queue: queue.clone(), ..self.clone() }
    }

    /// Asks twice if need be: over a connection that died while nobody used it the first attempt fails. What is done
    /// twice here is done once.
    pub(super) async fn ask(&self, command: Command) -> Result<Reply, Failure> {
        // What is not found may also be the task that others are to wait for.
        let is_link = matches!(&command, Command::Change(Change::Tasks(change)) if matches!(change.verb, Verb::Link(_)));
        let asked = bounded(async {
            Ok(match self.store.apply(&self.queue, command.clone()).await {
                Err(error) if error.is_retryable() => self.store.apply(&self.queue, command).await,
                reply => reply,
            })
        });
        asked.await?.map_err(|error| match error.kind() {
            StateErrorKind::NotFound if !is_link => self.missing(),
            _ => Failure::from(error),
        })
    }

    /// Changes something for all.
    pub(crate) async fn change(&self, change: Change) -> Result<(), Failure> {
        match self.ask(Command::Change(change)).await {
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

    /// The error that the queue has none.
    pub(crate) fn missing(&self) -> Failure {
        no_tasks(&self.queue)
    }

    /// The store's clock.
    pub(crate) async fn now(&self) -> Result<Micros, Failure> {
        match self.ask(Command::Read(Read::Clock)).await {
            Ok(Reply::Clock(now)) => Ok(now),
            other => Err(unexpected(other)),
        }
    }

    /// How the queue stands; none: it has no tasks, and never had.
    pub(crate) async fn look(&self) -> Result<Option<Overview>, Failure> {
        match self.ask(Command::Read(Read::Overview)).await {
            Ok(Reply::Overview(overview)) => Ok(Some(*overview)),
            Err(failure) if failure.code == NOINPUT => Ok(None),
            other => Err(unexpected(other)),
        }
    }

    pub(super) async fn workers(&self) -> Result<Vec<Worker>, Failure> {
        match self.ask(Command::Read(Read::Workers)).await {
            Ok(Reply::Workers(workers)) => Ok(workers),
            other => Err(unexpected(other)),
        }
    }

    pub(super) async fn schedules(&self) -> Result<Vec<Schedule>, Failure> {
        match self.ask(Command::Read(Read::Schedules)).await {
            Ok(Reply::Schedules(schedules)) => Ok(schedules),
            other => Err(unexpected(other)),
        }
    }

    /// The most urgent of those that are ready.
    pub(super) async fn line(&self, limit: u32) -> Result<Vec<Task>, Failure> {
        match self.ask(Command::Read(Read::Upcoming(limit))).await {
            Ok(Reply::Upcoming(tasks)) => Ok(tasks),
            other => Err(unexpected(other)),
        }
    }

    /// How long tasks of a kind waited and ran, hour by hour.
    pub(super) async fn times(&self, kind: &Kind, from: Micros) -> Result<Vec<Times>, Failure> {
        match self.ask(Command::Read(Read::Times { kind: kind.clone(), from })).await {
            Ok(Reply::Times(times)) => Ok(times),
            other => Err(unexpected(other)),
        }
    }

    pub(super) async fn task(&self, id: TaskId) -> Result<Option<Stored>, Failure> {
        match self.ask(Command::Read(Read::Tasks(vec![id]))).await {
            Ok(Reply::Tasks(tasks)) => Ok(tasks.into_iter().next().flatten()),
            other => Err(unexpected(other)),
        }
    }

    /// The same, if it is there.
    pub(super) async fn known(&self, id: TaskId) -> Result<Stored, Failure> {
        let missing = || {
            let text = format!("there is no task {id} in queue {:?}", self.queue.as_str());
            Failure::new(NOINPUT, format!("{text}: it was never added, or was deleted after its retention"))
        };
        self.task(id).await?.ok_or_else(missing)
    }

    /// Those of them that are stored, in the order of their ids, without payloads and edges.
    pub(super) async fn rows(&self, mut ids: Vec<TaskId>) -> Result<Vec<Task>, Failure> {
        ids.sort();
        let mut rows = Vec::new();
        for ids in ids.chunks(MAX_PAGE as usize) {
            let page = self.page(&Selector::ids(ids.to_vec()), None, MAX_PAGE, false).await?;
            rows.extend(page.tasks.into_iter().map(|stored| stored.task));
        }
        Ok(rows)
    }

    /// Those of them that are stored, as far as one reply goes.
    pub(super) async fn tasks(&self, ids: Vec<TaskId>) -> Result<Vec<Stored>, Failure> {
        match self.ask(Command::Read(Read::Tasks(ids))).await {
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
        match self.ask(Command::Read(page)).await {
            Ok(Reply::Page(page)) => Ok(page),
            other => Err(unexpected(other)),
        }
    }

    /// What the command line selects, and the store's clock, which says how old tasks are.
    pub(super) async fn selector(&self, args: &SelectorArgs) -> Result<(Selector, Micros), Failure> {
        let now = self.now().await?;
        let before = args.older_than.map(|age| now - Micros::from_duration(age));
        let states = args.states.clone();
        // Those that have ended are as old as their end.
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

/// The failure, or that of a store that answers something else than it was asked.
pub(super) fn unexpected(reply: Result<Reply, Failure>) -> Failure {
    match reply {
        Err(failure) => failure,
        Ok(_) => Failure::new(SOFTWARE, "the store returned a reply of another type"),
    }
}

/// Opens the queue as a library does, which makes it if it is not there.
pub(crate) async fn open_queue(target: &Target) -> Result<TaskQueue, Failure> {
    let store = target.store.store().await?;
    let builder = TaskQueue::builder(target.queue.as_str()).timeout(PATIENCE);
    builder.open(&store).await.map_err(|error| Failure::from(&error))
}

/// Pauses or resumes the stored tasks of a queue. Returns whether it has any.
pub(crate) async fn pause_or_resume(target: &Target, change: Change) -> Result<bool, Failure> {
    let Some(tasks) = Tasks::open_if_kept(target).await? else { return Ok(false) };
    if tasks.is_there().await? {
        tasks.ask(Command::Change(change)).await?;
        return Ok(true);
    }
    Ok(false)
}
