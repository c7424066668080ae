//! The status of the tasks of a queue, for views that show it repeatedly, or show many queues.

use interval_queue::{
    Micros, Snapshot,
    task_contract::{Overview, State, Task, Worker},
};
use interval_queue_tasks::{Condition, QueueStatus};

use super::{
    counts::{Counts, Rate, in_state, left, rate_in_words, share, states, total},
    queue_tasks::Tasks,
    status_text, task_words,
    workers::runs,
};
use crate::exit::Failure;

/// The status of the tasks of a queue at one instant.
#[derive(Clone, Debug)]
pub(crate) struct Summary {
    /// The store's clock.
    pub(crate) at: Micros,
    pub(crate) counts: Counts,
    /// Leased tasks whose worker is lost.
    pub(crate) lost: u64,
    /// The conditions in force, the most important first.
    pub(crate) conditions: Vec<Condition>,
    /// Age of the oldest ready task.
    pub(crate) oldest: Option<Micros>,
    /// Number of live workers.
    pub(crate) workers: u64,
    /// Runs with the names of their workers, the earliest first, at most a hundred per worker.
    pub(crate) runs: Vec<(Task, String)>,
    /// The most urgent ready tasks, in the order in which they will be leased.
    pub(crate) upcoming: Vec<Task>,
}

/// Maximum upcoming tasks that are read.
const MAX_UPCOMING: u32 = 20;

impl Summary {
    /// Makes a summary without runs and upcoming tasks, from one read.
    pub(crate) fn of(overview: &Overview, pace: Option<&Snapshot>) -> Self {
        Self {
            at: overview.at,
            counts: total(overview),
            lost: overview.lost,
            conditions: QueueStatus::of(overview, pace).conditions().cloned().collect(),
            oldest: overview.oldest.map(|oldest| overview.at - oldest),
            workers: overview.workers,
            runs: Vec::new(),
            upcoming: Vec::new(),
        }
    }

    /// Reads a summary without runs and upcoming tasks. Returns `None` if the queue has no tasks.
    pub(crate) async fn find_without_runs(
        tasks: &Tasks,
        pace: Option<&Snapshot>,
    ) -> Result<Option<Self>, Failure> {
        Ok(tasks.overview().await?.map(|overview| Self::of(&overview, pace)))
    }

    /// Reads a summary. Returns `None` if the queue has no tasks.
    pub(crate) async fn find(tasks: &Tasks, pace: Option<&Snapshot>) -> Result<Option<Self>, Failure> {
        let Some(mut summary) = Self::find_without_runs(tasks, pace).await? else { return Ok(None) };
        // Without live tasks only the number of workers is needed.
        let workers = if summary.left() > 0 { tasks.workers().await? } else { Vec::new() };
        if summary.in_state(State::Ready) > 0 {
            summary.upcoming = tasks.upcoming(MAX_UPCOMING).await?;
        }
        let found = runs(tasks, &workers).await?;
        // A task that was leased between the reads is running, not upcoming.
        summary.upcoming.retain(|task| found.iter().all(|run| run.id != task.id));
        summary.runs =
            found.into_iter().map(|task| (label(&task, &workers), task)).map(|(l, task)| (task, l)).collect();
        Ok(Some(summary))
    }

    /// Number of tasks in this state.
    pub(crate) fn in_state(&self, state: State) -> u64 {
        in_state(&self.counts, state)
    }

    /// Number of tasks that have not ended.
    pub(crate) fn left(&self) -> u64 {
        left(&self.counts)
    }

    /// Whether tasks are stored, including ended tasks, but not the ids of purged tasks.
    pub(crate) fn is_stored(&self) -> bool {
        State::ALL.into_iter().any(|state| state != State::Purged && self.in_state(state) > 0)
    }

    /// Number of running tasks.
    pub(crate) fn running(&self) -> u64 {
        self.in_state(State::Leased).saturating_sub(self.lost)
    }

    /// Formats the conditions in force on one line.
    pub(crate) fn reason(&self) -> String {
        status_text::reason(&self.conditions)
    }

    /// Formats the rate of ended tasks since an earlier read.
    pub(crate) fn pace_since(&self, before: (Micros, &Counts)) -> Option<String> {
        Rate::between(before, (self.at, &self.counts)).map(|rate| rate_in_words(rate, self.left()))
    }

    /// Formats the share of all added tasks that has ended.
    pub(crate) fn share(&self) -> Option<String> {
        share(&self.counts)
    }

    /// Formats the counts of all states that have tasks.
    pub(crate) fn in_words(&self) -> String {
        states(&self.counts)
    }
}

/// The name of the worker of a run.
fn label(task: &Task, workers: &[Worker]) -> String {
    let worker = workers.iter().find(|worker| Some(worker.presence.worker) == task.worker);
    worker.map_or(String::new(), |worker| task_words::line(worker.presence.label.as_str()))
}
