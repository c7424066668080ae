//! The tasks of the queue that the command line names.

use std::time::Duration;

use interval_queue::Micros;
use interval_queue_tasks::{Overview, Selector, Settings, Stored, TaskId, TaskQueue, TaskQueues};

use super::{id_arg::IdArg, task_args::SelectorArgs};
use crate::{
    args::{StoreArgs, Target},
    exit::{CONFIG, Failure, NOINPUT, USAGE},
    target::bounded,
};

/// A read retries as long if the store does not answer.
pub(super) const READ_TIMEOUT: Duration = Duration::from_secs(2);
/// A command that takes long retries as long.
const LONG_TIMEOUT: Duration = Duration::from_secs(60);

impl StoreArgs {
    /// `None`: the store keeps no tasks.
    pub(crate) async fn task_queues(&self) -> Result<Option<TaskQueues>, Failure> {
        match self.opened_tasks().await {
            Err(failure) if [CONFIG, NOINPUT].contains(&failure.code) => Ok(None),
            opened => opened.map(Some),
        }
    }

    async fn opened_tasks(&self) -> Result<TaskQueues, Failure> {
        let store = self.store().await?;
        bounded(async { Ok(TaskQueues::open(&store).await?.timeout(READ_TIMEOUT)) }).await
    }
}

impl Target {
    /// The queue is not created.
    pub(crate) async fn tasks(&self) -> Result<TaskQueue, Failure> {
        self.tasks_and_overview().await.map(|(queue, _)| queue)
    }

    /// With the overview that was read to find the queue.
    pub(crate) async fn tasks_and_overview(&self) -> Result<(TaskQueue, Overview), Failure> {
        let queues = self.store.opened_tasks().await?;
        queues.find(&self.queue).await?.ok_or_else(|| self.no_tasks())
    }

    /// For a command that goes on through an outage of the store.
    pub(crate) async fn tasks_for_long(&self) -> Result<TaskQueue, Failure> {
        let queues = self.store.opened_tasks().await?.timeout(LONG_TIMEOUT);
        let found = queues.find(&self.queue).await?;
        found.map(|(queue, _)| queue).ok_or_else(|| self.no_tasks())
    }

    /// `None`: the store keeps no tasks, or none of this queue.
    pub(crate) async fn tasks_if_any(&self) -> Result<Option<(TaskQueue, Overview)>, Failure> {
        match self.store.task_queues().await? {
            Some(queues) => Ok(queues.find(&self.queue).await?),
            None => Ok(None),
        }
    }

    /// Creates the queue if it does not exist.
    pub(crate) async fn created_tasks(&self) -> Result<TaskQueue, Failure> {
        self.created_within(LONG_TIMEOUT).await
    }

    /// For a caller that retries and prints outages.
    pub(crate) async fn created_tasks_once(&self) -> Result<TaskQueue, Failure> {
        self.created_within(READ_TIMEOUT).await
    }

    async fn created_within(&self, timeout: Duration) -> Result<TaskQueue, Failure> {
        let store = self.store.store().await?;
        Ok(TaskQueue::builder(self.queue.as_str()).timeout(timeout).open(&store).await?)
    }

    /// A new queue gets these settings.
    pub(crate) async fn created_tasks_with(&self, settings: &Settings) -> Result<TaskQueue, Failure> {
        let store = self.store.store().await?;
        let builder = TaskQueue::builder(self.queue.as_str()).timeout(LONG_TIMEOUT).settings(settings);
        Ok(builder.open(&store).await?)
    }

    pub(crate) fn no_tasks(&self) -> Failure {
        let queue = self.queue.as_str();
        let text = format!("queue {queue:?} has no tasks in this store: `interval-queue add` adds some");
        Failure::new(NOINPUT, text)
    }
}

pub(super) async fn existing(queue: &TaskQueue, id: TaskId) -> Result<Stored, Failure> {
    let missing = || {
        let text = format!("there is no task {id} in queue {:?}", queue.name().as_str());
        Failure::new(NOINPUT, format!("{text}: it was never added, or was deleted after its retention"))
    };
    queue.task(id).await?.ok_or_else(missing)
}

impl SelectorArgs {
    /// Only ended tasks are selected, so ages count from their end.
    pub(super) fn is_of_ended(&self) -> bool {
        !self.states.is_empty() && self.states.iter().all(|state| state.is_ended())
    }
}

/// Ages are by the store's clock.
pub(super) async fn selector(queue: &TaskQueue, args: &SelectorArgs) -> Result<Selector, Failure> {
    let (mut before, mut from) = (None, None);
    if args.older_than.is_some() || args.newer_than.is_some() {
        let now = queue.now().await?;
        before = args.older_than.map(|age| now - Micros::from_duration(age));
        from = args.newer_than.map(|age| now - Micros::from_duration(age));
    }
    let states = args.states.clone();
    let ended = args.is_of_ended();
    let mut tags = args.tags.clone();
    tags.extend(args.flow.iter().flat_map(|flow| flow.selector().tags));
    Ok(Selector {
        ids: IdArg::ids(queue, &args.ids).await?,
        id_suffix: None,
        kinds: args.kinds.clone(),
        states,
        key: args.key.clone(),
        unique: args.unique.clone(),
        tags,
        schedule: args.schedule.clone(),
        worker: args.worker,
        error: args.error.clone(),
        payload: args.payload.clone(),
        added_from: from.filter(|_| !ended),
        added_before: before.filter(|_| !ended),
        ended_from: from.filter(|_| ended),
        ended_before: before.filter(|_| ended),
    })
}

pub(super) fn require_selection(selector: &Selector, is_all_intended: bool) -> Result<(), Failure> {
    if selector.is_all() && !is_all_intended {
        let text = "no tasks are selected: give ids, select by --state, --kind, --flow, …, or give --all";
        return Err(Failure::new(USAGE, text));
    }
    Ok(())
}
