//! The stored tasks in the output of `status` and `list`.

use interval_queue::{
    Micros, Snapshot,
    task_contract::{Overview, Task},
};
use interval_queue_tasks::QueueStatus;
use serde_json::{Value, json};

use super::{
    content::Content,
    counts::{counts_json, left, states, total},
    queue_status::{extend, longest, oldest_in_words},
    queue_tasks::Tasks,
    status_text,
};
use crate::{duration::about, exit::Failure};

/// The stored tasks of a queue, for `status` and `list`.
pub(crate) struct StatusLines {
    overview: Overview,
    longest: Option<Task>,
}

impl StatusLines {
    /// Returns `None` if no tasks of the queue are stored.
    pub(crate) async fn find(tasks: &Tasks) -> Result<Option<Self>, Failure> {
        let Some(Content { overview, .. }) = Content::find(tasks).await? else { return Ok(None) };
        let longest = longest(tasks, &tasks.workers().await?).await?;
        Ok(Some(Self { overview, longest }))
    }

    /// The age of the oldest ready task, and the time of the longest run.
    fn ages(&self) -> (Option<Micros>, Option<Micros>) {
        let age = |at: Option<Micros>| at.map(|at| self.overview.at - at);
        (age(self.overview.oldest), age(self.longest.as_ref().and_then(|task| task.leased)))
    }

    /// The counts by state.
    pub(crate) fn counts(&self) -> String {
        states(&total(&self.overview))
    }

    /// The conditions in force, for a row of a table.
    pub(crate) fn facts(&self, pace: Option<&Snapshot>) -> String {
        status_text::facts(QueueStatus::of(&self.overview, pace).conditions())
    }

    fn reason(&self, pace: Option<&Snapshot>) -> String {
        status_text::reason(QueueStatus::of(&self.overview, pace).conditions())
    }

    /// Whether some tasks have not ended.
    pub(crate) fn is_live(&self) -> bool {
        left(&total(&self.overview)) > 0
    }

    /// Formats a line for people.
    pub(crate) fn text(&self, pace: Option<&Snapshot>) -> String {
        let (oldest, longest) = self.ages();
        let oldest = oldest.map(|age| format!("{}; ", oldest_in_words(age)));
        let longest = longest.map(|age| format!("the longest run takes {} so far; ", about(age)));
        let (oldest, longest) = (oldest.unwrap_or_default(), longest.unwrap_or_default());
        let (counts, reason) = (self.counts(), self.reason(pace));
        format!("{counts}; {reason}; {oldest}{longest}`interval-queue tasks` shows more")
    }

    /// Makes a JSON object.
    pub(crate) fn json(&self, pace: Option<&Snapshot>) -> Value {
        let counts = total(&self.overview);
        let (oldest, longest) = self.ages();
        let mut object = json!({
            "left": left(&counts),
            "counts": counts_json(&counts),
            "workers": self.overview.workers,
            "max_running": self.overview.settings.max_running,
            "oldest_ready_us": oldest.map(Micros::get),
            "longest_run_us": longest.map(Micros::get),
        });
        extend(&mut object, status_text::fields(&self.overview, pace));
        object
    }
}
