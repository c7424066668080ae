//! The stored tasks, schedules and settings of a queue: `list` shows them, and `delete` deletes
//! them.

use interval_queue_tasks::{Overview, Settings, TaskQueue};

use super::summary::Summary;
use crate::exit::Failure;

/// The content of a queue, without ids of purged tasks.
pub(crate) struct Content {
    pub(crate) overview: Overview,
    schedules: usize,
}

impl Content {
    /// Returns `None` if only ids of purged tasks are stored, or nothing.
    pub(crate) async fn of(queue: &TaskQueue, overview: Overview) -> Result<Option<Self>, Failure> {
        let stored = Self { schedules: queue.schedules().await?.len(), overview };
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

    /// The reason why the queue cannot be deleted now.
    pub(crate) fn in_use(&self) -> Option<String> {
        TaskQueue::in_use(&self.overview)
    }

    /// Formats the parts that would be deleted.
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
