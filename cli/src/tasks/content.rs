//! The stored tasks, schedules and settings of a queue, for `list` and `delete`.

use interval_queue_tasks::{Overview, Settings, TaskQueue};

use super::summary::Summary;
use crate::exit::Failure;

/// Ids of purged tasks do not count.
pub(crate) struct Content {
    pub(crate) overview: Overview,
    schedules: usize,
}

impl Content {
    /// `None`: nothing, or only ids of purged tasks.
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

    /// Why the queue cannot be deleted now.
    pub(crate) fn in_use(&self) -> Option<String> {
        TaskQueue::in_use(&self.overview)
    }

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
