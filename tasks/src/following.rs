//! What becomes of tasks, told as it happens.

use std::time::Duration;

use interval_queue_task_contract::{Command, Follow, Followed, MAX_PAGE, Mark, Reply};

use crate::{TaskQueue, error::Error, host, queue::unexpected};

/// So long after a look there is the next one, unless there is more than one look tells.
const LOOK: Duration = Duration::from_millis(500);

/// Tells what becomes of tasks, from the moment on at which it was made: see [`TaskQueue::follow`].
#[derive(Debug)]
pub struct Follower {
    queue: TaskQueue,
    mark: Mark,
    /// Whether there is more, as the last look was filled.
    has_more: bool,
}

impl TaskQueue {
    /// Follows the queue: each time a task comes into another state, from now on, is told, in the order in which it was
    /// stored. While somebody follows, each command that changes tasks stores that as well; a queue that nobody follows
    /// has no cost of it.
    ///
    /// What happens is kept for two minutes, and noted for one at least after the last look. A follower that comes
    /// later is told so: then something may be lacking. That ended tasks are forgotten in time is not told, nor that
    /// a task is added by a transaction that began before anybody followed.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use interval_queue_tasks::{State, Task, TaskQueue};
    /// # let queue = TaskQueue::builder("billing").connect("memory:").await?;
    /// let mut follower = queue.follow().await?;
    /// queue.add(Task::new("invoice", &"Ada")).await?;
    /// let told = follower.next().await?;
    /// assert_eq!(told.events[0].to, Some(State::Ready));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Missing`](crate::ErrorKind::Missing) if there is no such queue any more; else as [`task`](Self::task).
    pub async fn follow(&self) -> Result<Follower, Error> {
        let begun = self.ask_events(None).await?;
        Ok(Follower { queue: self.clone(), mark: begun.mark, has_more: true })
    }

    async fn ask_events(&self, after: Option<Mark>) -> Result<Followed, Error> {
        let follow = Command::Follow(Follow { after, most: MAX_PAGE });
        match self.shared.insist("the look at events", follow).await? {
            Reply::Followed(followed) => Ok(followed),
            other => Err(unexpected(&other)),
        }
    }
}

impl Follower {
    /// The next events, at least one, unless some were missed: a thousand at most. It looks twice a second until there
    /// are some, and more often only if there are more than a thousand.
    ///
    /// # Errors
    ///
    /// As [`TaskQueue::follow`]. The follower can go on after that.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: nothing that was not given is passed over.
    pub async fn next(&mut self) -> Result<Followed, Error> {
        loop {
            if !self.has_more {
                host::sleep(&*self.queue.shared.host, LOOK).await;
            }
            let followed = self.queue.ask_events(Some(self.mark)).await?;
            (self.mark, self.has_more) = (followed.mark, followed.events.len() >= MAX_PAGE as usize);
            if followed.missed || !followed.events.is_empty() {
                return Ok(followed);
            }
        }
    }
}
