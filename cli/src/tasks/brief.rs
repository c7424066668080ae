//! What `status` tells of stored tasks.

use interval_queue::{
    Micros,
    task_contract::{Overview, Task},
};
use serde_json::{Value, json};

use super::{
    ask::Tasks,
    outlook::{counted, counts_json, left, longest, oldest_in_words, total},
};
use crate::{args::Target, duration::show, exit::Failure};

/// What `status` tells of a queue's tasks.
pub(crate) struct Brief {
    overview: Overview,
    longest: Option<Task>,
}

impl Brief {
    /// That of a queue; none: it has no tasks.
    pub(crate) async fn find(target: &Target) -> Result<Option<Self>, Failure> {
        let Some((tasks, overview)) = Tasks::find(target).await? else { return Ok(None) };
        let longest = longest(&tasks, &tasks.workers().await?).await?;
        Ok(Some(Self { overview, longest }))
    }

    /// How long the first of those that are ready waits, and how long the longest run takes.
    fn ages(&self) -> (Option<Micros>, Option<Micros>) {
        let age = |at: Option<Micros>| at.map(|at| self.overview.at - at);
        (age(self.overview.oldest), age(self.longest.as_ref().and_then(|task| task.leased)))
    }

    /// For people.
    pub(crate) fn text(&self) -> String {
        let (oldest, longest) = self.ages();
        let oldest = oldest.map(|age| format!("{}; ", oldest_in_words(age)));
        let longest = longest.map(|age| format!("the longest run takes {} so far; ", show(age)));
        let (oldest, longest) = (oldest.unwrap_or_default(), longest.unwrap_or_default());
        format!("{}; {oldest}{longest}`interval-queue tasks` tells more", counted(&self.overview))
    }

    /// The same for programs.
    pub(crate) fn json(&self) -> Value {
        let counts = total(&self.overview);
        let (oldest, longest) = self.ages();
        json!({
            "paused": self.overview.paused,
            "left": left(&counts),
            "counts": counts_json(&counts),
            "oldest_ready_us": oldest.map(Micros::get),
            "longest_run_us": longest.map(Micros::get),
        })
    }
}
