//! How the tasks of a queue stand, for views that show it again and again, or many queues at once.

use interval_queue::{
    Micros, Snapshot,
    task_contract::{Overview, State, Task, Worker},
};
use interval_queue_tasks::{Condition, QueueStatus};

use super::{
    ask::Tasks,
    counts::{Counts, Rate, in_state, left, rate_in_words, share, states, total},
    status_text, task_words,
    workers::runs,
};
use crate::exit::Failure;

/// How the tasks of a queue stood.
#[derive(Clone, Debug)]
pub(crate) struct Summary {
    /// The store's clock.
    pub(crate) at: Micros,
    pub(crate) counts: Counts,
    /// How many of those that are leased are lost.
    pub(crate) lost: u64,
    /// What is in force, the most important first.
    pub(crate) conditions: Vec<Condition>,
    /// How long the task has been ready that has been so for longest.
    pub(crate) oldest: Option<Micros>,
    /// How many workers live.
    pub(crate) workers: u64,
    /// What they run, with their names, that which began first before others: of each at most a hundred.
    pub(crate) runs: Vec<(Task, String)>,
    /// The most urgent of those that are ready, in the order in which they are leased.
    pub(crate) line: Vec<Task>,
}

/// So many tasks of the line are shown to whoever looks again and again.
const IN_LINE: u32 = 20;

impl Summary {
    /// By one look: without runs and without the line.
    pub(crate) fn of(overview: &Overview, pace: Option<&Snapshot>) -> Self {
        Self {
            at: overview.at,
            counts: total(overview),
            lost: overview.lost,
            conditions: QueueStatus::of(overview, pace).conditions().cloned().collect(),
            oldest: overview.oldest.map(|oldest| overview.at - oldest),
            workers: overview.workers,
            runs: Vec::new(),
            line: Vec::new(),
        }
    }

    /// That of a queue by one look; none: it has no tasks.
    pub(crate) async fn glance(tasks: &Tasks, pace: Option<&Snapshot>) -> Result<Option<Self>, Failure> {
        Ok(tasks.look().await?.map(|overview| Self::of(&overview, pace)))
    }

    /// That of a queue; none: it has no tasks.
    pub(crate) async fn find(tasks: &Tasks, pace: Option<&Snapshot>) -> Result<Option<Self>, Failure> {
        let Some(mut summary) = Self::glance(tasks, pace).await? else { return Ok(None) };
        // Of an empty queue there is nothing to say of workers but how many there are.
        let workers = if summary.left() > 0 { tasks.workers().await? } else { Vec::new() };
        if summary.in_state(State::Ready) > 0 {
            summary.line = tasks.line(IN_LINE).await?;
        }
        let found = runs(tasks, &workers).await?;
        // What was leased between the looks runs.
        summary.line.retain(|task| found.iter().all(|run| run.id != task.id));
        summary.runs =
            found.into_iter().map(|task| (label(&task, &workers), task)).map(|(l, task)| (task, l)).collect();
        Ok(Some(summary))
    }

    /// How many there are in this state.
    pub(crate) fn in_state(&self, state: State) -> u64 {
        in_state(&self.counts, state)
    }

    /// How many have not ended.
    pub(crate) fn left(&self) -> u64 {
        left(&self.counts)
    }

    /// Whether tasks are stored, also ended ones, but for ids that are kept for a while.
    pub(crate) fn is_stored(&self) -> bool {
        State::ALL.into_iter().any(|state| state != State::Purged && self.in_state(state) > 0)
    }

    /// How many run.
    pub(crate) fn running(&self) -> u64 {
        self.in_state(State::Leased).saturating_sub(self.lost)
    }

    /// What is in force, in a line.
    pub(crate) fn reason(&self) -> String {
        status_text::reason(&self.conditions)
    }

    /// How fast they ended since this look, and the share of all that has ended.
    pub(crate) fn pace_since(&self, before: (Micros, &Counts)) -> Option<String> {
        Rate::between(before, (self.at, &self.counts)).map(|rate| rate_in_words(rate, self.left()))
    }

    /// Which share of all that was ever added has ended.
    pub(crate) fn share(&self) -> Option<String> {
        share(&self.counts)
    }

    /// Each state in which there are some, with how many.
    pub(crate) fn in_words(&self) -> String {
        states(&self.counts)
    }
}

/// What the worker of a run is called.
fn label(task: &Task, workers: &[Worker]) -> String {
    let worker = workers.iter().find(|worker| Some(worker.presence.worker) == task.worker);
    worker.map_or(String::new(), |worker| task_words::line(worker.presence.label.as_str()))
}
