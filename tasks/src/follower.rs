//! Following a queue: its events as they happen.

use std::time::Duration;

use interval_queue_task_contract::{Command, Follow, Followed, MAX_PAGE, Mark, Reply};

use crate::{TaskQueue, error::Error, host, queue::unexpected};

/// Does not apply if the last read was full.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Returns the events of a queue since the follower's creation: see [`TaskQueue::follow`].
#[derive(Debug)]
pub struct Follower {
    queue: TaskQueue,
    mark: Mark,
    has_logs: bool,
    /// The last read was full, so more events may be stored.
    has_more: bool,
}

impl TaskQueue {
    /// Follows the queue: returns each change of a task's state from now on, in the order of
    /// storing. Events are recorded only while a queue is followed.
    ///
    /// Events are kept for two minutes, and recorded for at least one minute after the last read. A
    /// follower that reads later gets [`missed`](Followed::missed): events may be missing. There is
    /// no event when an ended task is deleted after its retention, nor for a task added by a
    /// transaction that began before the queue was followed.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use interval_queue_tasks::{State, Task, TaskQueue};
    /// # let queue = TaskQueue::builder("billing").connect("memory:").await?;
    /// let mut follower = queue.follow().await?;
    /// queue.add(Task::new("invoice", &"Ada")).await?;
    /// let followed = follower.next().await?;
    /// assert_eq!(followed.events[0].to, Some(State::Ready));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`task`](Self::task), and [`Missing`](crate::ErrorKind::Missing) if there is no such
    /// queue.
    pub async fn follow(&self) -> Result<Follower, Error> {
        let begun = self.read_events(None).await?;
        Ok(Follower { queue: self.clone(), mark: begun.mark, has_logs: false, has_more: true })
    }

    async fn read_events(&self, after: Option<Mark>) -> Result<Followed, Error> {
        let follow = Command::Follow(Follow { after, most: MAX_PAGE });
        match self.shared.command_with_retries("the read of events", follow).await? {
            Reply::Followed(followed) => Ok(followed),
            other => Err(unexpected(&other)),
        }
    }
}

impl Follower {
    /// Also returns an event when the log of a task has new lines. Such an event
    /// [is of a log](crate::Event::is_log); a [`LogTail`](crate::LogTail) reads the lines.
    pub fn with_logs(self) -> Self {
        Self { has_logs: true, ..self }
    }

    /// Waits for events and returns up to 1,000: at least one, unless some were
    /// [missed](Followed::missed). Reads twice a second, and at once after a full read.
    ///
    /// # Errors
    ///
    /// As [`TaskQueue::follow`]. The follower remains usable.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: no event is skipped.
    pub async fn next(&mut self) -> Result<Followed, Error> {
        loop {
            if !self.has_more {
                host::sleep(&*self.queue.shared.host, POLL_INTERVAL).await;
            }
            let mut followed = self.queue.read_events(Some(self.mark)).await?;
            (self.mark, self.has_more) = (followed.mark, followed.events.len() >= MAX_PAGE as usize);
            followed.events.retain(|event| self.has_logs || !event.is_log());
            if followed.missed || !followed.events.is_empty() {
                return Ok(followed);
            }
        }
    }
}
