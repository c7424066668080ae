//! The stored tasks in the output of `status` and `list`.

use interval_queue::{Micros, Snapshot};
use interval_queue_documents::{Counts, Tasks, words};
use interval_queue_tasks::{Overview, QueueStatus, StoredTask, TaskQueue};

use super::{content::Content, queue_status::oldest_in_words};
use crate::exit::Failure;

pub(crate) struct StatusLines {
    overview: Overview,
    /// The run that began first.
    longest: Option<StoredTask>,
}

impl StatusLines {
    /// `None`: no tasks of the queue are stored.
    pub(crate) async fn of(queue: &TaskQueue, overview: Overview) -> Result<Option<Self>, Failure> {
        let Some(Content { overview, .. }) = Content::of(queue, overview).await? else { return Ok(None) };
        let longest = queue.runs(&queue.workers().await?).await?.into_iter().next();
        Ok(Some(Self { overview, longest }))
    }

    pub(crate) fn counts(&self) -> String {
        words::states(&Counts::of(&self.overview))
    }

    /// The conditions in force, for a row of a table.
    pub(crate) fn facts(&self, rate: Option<&Snapshot>) -> String {
        words::facts(QueueStatus::of(&self.overview, rate).conditions())
    }

    pub(crate) fn is_live(&self) -> bool {
        Counts::of(&self.overview).left() > 0
    }

    pub(crate) fn text(&self, rate: Option<&Snapshot>) -> String {
        let age = |at: Option<Micros>| at.map(|at| self.overview.at - at);
        let oldest = age(self.overview.oldest).map(|age| format!("{}; ", oldest_in_words(age)));
        let longest = age(self.longest.as_ref().and_then(|task| task.leased));
        let longest = longest.map(|age| format!("the longest run takes {} so far; ", words::about(age)));
        let (oldest, longest) = (oldest.unwrap_or_default(), longest.unwrap_or_default());
        let reason = words::reason(QueueStatus::of(&self.overview, rate).conditions());
        format!("{}; {reason}; {oldest}{longest}`interval-queue tasks` shows more", self.counts())
    }

    pub(crate) fn document(&self, rate: Option<&Snapshot>) -> Tasks {
        Tasks::of(&self.overview, rate, self.longest.as_ref())
    }
}
