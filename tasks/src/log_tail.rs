//! New lines of logs, as a follower learns of them.

use std::collections::{BTreeSet, HashMap};

use interval_queue::Micros;
use interval_queue_task_contract::{Event, LogLine, TaskId, Token};

use crate::{TaskQueue, error::Error};

/// Maximum in each of two generations.
const MAX_LOGS: usize = 10_000;
/// Few, since a task is read with its payload and result.
const READ_TASKS: usize = 20;
/// From writing to the report, with the default lease.
const MAX_AGE: Micros = Micros::from_millis(10_000);

/// Reads the lines that logs have gained since its creation. See [`TaskQueue::log_tail`].
#[derive(Debug)]
pub struct LogTail {
    queue: TaskQueue,
    since: Micros,
    /// Last lines, and those of an earlier generation.
    last: HashMap<(TaskId, Token), u32>,
    earlier: HashMap<(TaskId, Token), u32>,
}

impl TaskQueue {
    /// Returns a reader of the lines that logs gain from now on, and of lines that are up to ten
    /// seconds old, which workers may not have reported yet. Give it the events of a
    /// [`Follower`](crate::Follower) that returns those of logs.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use interval_queue_tasks::{Task, TaskQueue};
    /// # let queue = TaskQueue::builder("billing").connect("memory:").await?;
    /// let mut follower = queue.follow().await?.with_logs();
    /// let mut tail = queue.log_tail().await?;
    /// let id = queue.add(Task::new("invoice", &"Ada")).await?.id();
    /// queue.note(id, "called Ada").await?;
    /// let events = follower.next().await?.events;
    /// let lines = tail.new_lines(&events).await?;
    /// assert_eq!((lines[0].0, lines[0].1.text.as_str()), (id, "called Ada"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`task`](Self::task), and [`Missing`](crate::ErrorKind::Missing) if there is no such
    /// queue.
    pub async fn log_tail(&self) -> Result<LogTail, Error> {
        let (since, last, earlier) = (self.now().await?, HashMap::new(), HashMap::new());
        Ok(LogTail { queue: self.clone(), since, last, earlier })
    }
}

impl LogTail {
    /// The new lines of the tasks whose logs have changed, by these events: those of a task in the
    /// order of storing. Of a run that logs more than 64 lines between two reads, only the last 64
    /// are stored.
    ///
    /// # Errors
    ///
    /// As [`TaskQueue::task`]. The next call returns the lines.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: no line is skipped.
    pub async fn new_lines(&mut self, events: &[Event]) -> Result<Vec<(TaskId, LogLine)>, Error> {
        let changed: BTreeSet<TaskId> =
            events.iter().filter(|event| event.is_log()).map(|event| event.task).collect();
        let changed: Vec<_> = changed.into_iter().collect();
        let mut new = Vec::new();
        for ids in changed.chunks(READ_TASKS) {
            for stored in self.queue.tasks(ids.iter().copied()).await? {
                let id = stored.task.id;
                let is_new = |line: &LogLine| {
                    let run = (id, line.token);
                    let last = self.last.get(&run).or_else(|| self.earlier.get(&run));
                    // A note is stored when it is written.
                    let since = if line.is_note() { self.since } else { self.since - MAX_AGE };
                    last.map_or(line.at >= since, |last| line.number > *last)
                };
                new.extend(stored.log.into_iter().filter(is_new).map(|line| (id, line)));
            }
        }
        for (id, line) in &new {
            self.last.insert((*id, line.token), line.number);
        }
        if self.last.len() > MAX_LOGS {
            self.earlier = std::mem::take(&mut self.last);
        }
        Ok(new)
    }
}
