//! The stored tasks, schedules and settings of a queue: `list` shows them, and `delete` deletes them.

use interval_queue::task_contract::{Overview, Settings};
use interval_queue_tasks::TaskQueue;

use super::{ask::Tasks, summary::Summary};
use crate::exit::Failure;

/// A queue of which something is stored besides ids of purged tasks.
pub(crate) struct Content {
    pub(crate) overview: Overview,
    schedules: usize,
}

impl Content {
    /// Returns `None` if nothing is stored of the queue but ids of purged tasks.
    pub(crate) async fn find(tasks: &Tasks) -> Result<Option<Self>, Failure> {
        let Some(overview) = tasks.look().await? else { return Ok(None) };
        let stored = Self { schedules: tasks.schedules().await?.len(), overview };
        Ok((!stored.is_blank()).then_some(stored))
    }

    fn is_blank(&self) -> bool {
        let Overview { settings, paused, paused_keys, kinds, workers, .. } = &self.overview;
        let is_set = *settings != Settings::default() || *paused || kinds.iter().any(|row| row.paused);
        let is_empty = !self.summary().is_stored() && self.schedules == 0 && paused_keys.is_empty();
        is_empty && !is_set && *workers == 0
    }

    fn summary(&self) -> Summary {
        Summary::of(&self.overview, None)
    }

    /// Why it cannot be deleted now.
    pub(crate) fn in_use(&self) -> Option<String> {
        TaskQueue::in_use(&self.overview)
    }

    /// The parts that would be deleted.
    pub(crate) fn in_words(&self) -> String {
        let summary = self.summary();
        let tasks = summary.is_stored().then(|| format!("its tasks, {}", summary.in_words()));
        let schedules = (self.schedules > 0).then(|| {
            let schedules = if self.schedules == 1 { "schedule" } else { "schedules" };
            format!("{} {schedules}", self.schedules)
        });
        let parts: Vec<_> =
            [tasks, schedules, Some("the settings of its tasks".into())].into_iter().flatten().collect();
        parts.join(", ")
    }
}
