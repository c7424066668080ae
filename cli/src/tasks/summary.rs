//! The status of the tasks of a queue, for views that show it repeatedly, or show many queues.

use interval_queue::{Micros, Snapshot};
use interval_queue_documents::{Counts, Measured, words};
use interval_queue_tasks::{
    Condition, Counter, Overview, QueueStatus, State, StoredTask, StoredWorker, TaskQueue,
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
    pub(crate) runs: Vec<(StoredTask, String)>,
    /// The most urgent ready tasks, in the order in which they will be leased.
    pub(crate) upcoming: Vec<StoredTask>,
}

/// Maximum upcoming tasks that are read.
const MAX_UPCOMING: u32 = 20;

impl Summary {
    /// Makes a summary without runs and upcoming tasks, from one read.
    pub(crate) fn of(overview: &Overview, pace: Option<&Snapshot>) -> Self {
        Self {
            at: overview.at,
            counts: Counts::of(overview),
            lost: overview.lost,
            conditions: QueueStatus::of(overview, pace).conditions().cloned().collect(),
            oldest: overview.oldest.map(|oldest| overview.at - oldest),
            workers: overview.workers,
            runs: Vec::new(),
            upcoming: Vec::new(),
        }
    }

    /// Adds runs and upcoming tasks.
    pub(crate) async fn with_runs(mut self, queue: &TaskQueue) -> Result<Self, Failure> {
        // Without live tasks only the number of workers is needed.
        let workers = if self.left() > 0 { queue.workers().await? } else { Vec::new() };
        if self.in_state(State::Ready) > 0 {
            self.upcoming = queue.upcoming(MAX_UPCOMING).await?;
        }
        let runs = queue.runs(&workers).await?;
        // A task that was leased between the reads is running, not upcoming.
        self.upcoming.retain(|task| runs.iter().all(|run| run.id != task.id));
        let labelled = |task: StoredTask| (label(&task, &workers), task);
        self.runs = runs.into_iter().map(labelled).map(|(label, task)| (task, label)).collect();
        Ok(self)
    }

    /// Number of tasks in this state.
    pub(crate) fn in_state(&self, state: State) -> u64 {
        self.counts.get(Counter::Now(state))
    }

    /// Number of tasks that have not ended.
    pub(crate) fn left(&self) -> u64 {
        self.counts.left()
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
        words::reason(&self.conditions)
    }

    /// Formats the rate of ended tasks since an earlier read.
    pub(crate) fn pace_since(&self, before: (Micros, &Counts)) -> Option<String> {
        Measured::between(before, (self.at, &self.counts)).map(|seen| words::measured(seen, self.left()))
    }

    /// Formats the share of all added tasks that has ended.
    pub(crate) fn share(&self) -> Option<String> {
        words::share(&self.counts)
    }

    /// Formats the counts of all states that have tasks.
    pub(crate) fn in_words(&self) -> String {
        words::states(&self.counts)
    }
}

/// The name of the worker of a run.
fn label(task: &StoredTask, workers: &[StoredWorker]) -> String {
    let worker = workers.iter().find(|worker| Some(worker.presence.worker) == task.worker);
    worker.map_or(String::new(), |worker| words::line(worker.presence.label.as_str()))
}
