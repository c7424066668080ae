//! Counting tags.

use std::collections::HashMap;

use interval_queue_task_contract::{Selector, Tag, Task};

use crate::{TaskQueue, error::Error};

impl TaskQueue {
    /// Tags of the selected tasks, each with its number of tasks: most used first, ties by name.
    /// Purged tasks count only if the selector names that state.
    ///
    /// Reads all selected tasks page by page and holds each tag once in memory. Concurrent changes
    /// may or may not count.
    ///
    /// # Errors
    ///
    /// As [`task`](Self::task).
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn tags(&self, selector: &Selector) -> Result<Vec<(Tag, u64)>, Error> {
        let mut counts: HashMap<Tag, u64> = HashMap::new();
        let count = |task: Task| {
            for tag in task.tags {
                *counts.entry(tag).or_default() += 1;
            }
        };
        self.each(selector, count).await?;
        let mut counts: Vec<_> = counts.into_iter().collect();
        counts.sort_unstable_by(|(a, of_a), (b, of_b)| of_b.cmp(of_a).then_with(|| a.cmp(b)));
        Ok(counts)
    }
}
