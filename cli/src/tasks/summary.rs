//! The status of the tasks of a queue, for views that show it repeatedly or show many queues.

use interval_queue::{Micros, Snapshot};
use interval_queue_documents::{Counts, Measured, words};
use interval_queue_tasks::{
    Condition, Counter, Overview, QueueStatus, State, StoredTask, StoredWorker, TaskQueue,
};

use crate::exit::Failure;

#[derive(Clone, Debug)]
pub(crate) struct Summary {
    pub(crate) at: Micros,
    pub(crate) counts: Counts,
    /// Their worker is lost.
    pub(crate) lost: u64,
    /// The most important first.
    pub(crate) conditions: Vec<Condition>,
    pub(crate) oldest: Option<Micros>,
    pub(crate) workers: u64,
    /// With the names of their workers, the earliest first, at most a hundred per worker.
    pub(crate) runs: Vec<(StoredTask, String)>,
    /// In the order in which they will be leased.
    pub(crate) upcoming: Vec<StoredTask>,
}

const MAX_UPCOMING: u32 = 20;

impl Summary {
    /// From one read, without runs and upcoming tasks.
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

    pub(crate) async fn with_runs(mut self, queue: &TaskQueue) -> Result<Self, Failure> {
        // Without live tasks only the number of workers is needed.
        let workers = if self.left() > 0 { queue.workers().await? } else { Vec::new() };
        if self.in_state(State::Ready) > 0 {
            self.upcoming = queue.upcoming(MAX_UPCOMING).await?;
        }
        let runs = queue.runs(&workers).await?;
        // A task that was leased between the reads is running.
        self.upcoming.retain(|task| runs.iter().all(|run| run.id != task.id));
        let labelled = |task: StoredTask| (label(&task, &workers), task);
        self.runs = runs.into_iter().map(labelled).map(|(label, task)| (task, label)).collect();
        Ok(self)
    }

    pub(crate) fn in_state(&self, state: State) -> u64 {
        self.counts.get(Counter::Now(state))
    }

    pub(crate) fn left(&self) -> u64 {
        self.counts.left()
    }

    /// Ended tasks count, ids of purged tasks do not.
    pub(crate) fn is_stored(&self) -> bool {
        State::ALL.into_iter().any(|state| state != State::Purged && self.in_state(state) > 0)
    }

    pub(crate) fn running(&self) -> u64 {
        self.in_state(State::Leased).saturating_sub(self.lost)
    }

    pub(crate) fn reason(&self) -> String {
        words::reason(&self.conditions)
    }

    pub(crate) fn pace_since(&self, before: (Micros, &Counts)) -> Option<String> {
        Measured::between(before, (self.at, &self.counts)).map(|seen| words::measured(seen, self.left()))
    }

    pub(crate) fn share(&self) -> Option<String> {
        words::share(&self.counts)
    }

    pub(crate) fn in_words(&self) -> String {
        words::states(&self.counts)
    }
}

fn label(task: &StoredTask, workers: &[StoredWorker]) -> String {
    let worker = workers.iter().find(|worker| Some(worker.presence.worker) == task.worker);
    worker.map_or(String::new(), |worker| words::line(worker.presence.label.as_str()))
}
