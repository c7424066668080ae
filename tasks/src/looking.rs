//! What can be seen of a queue and its tasks, and waiting for the end of one.

use std::time::Duration;

use interval_queue::Micros;
use interval_queue_task_contract::{
    Command, Inputs, Json, Key, Kind, Overview, Page, Read, Reply, Selector, State, Stored, Task, TaskId,
    Times, Worker,
};
use serde::de::DeserializeOwned;

use crate::{
    TaskQueue,
    error::{Error, ErrorKind},
    host,
    queue::unexpected,
};

/// The first and the longest time between two looks at a task that is waited for.
pub(crate) const LOOK: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));

impl TaskQueue {
    async fn read(&self, read: Read) -> Result<Reply, Error> {
        self.shared.insist("the look", Command::Read(read)).await
    }

    /// The limit that a key has of its own; 0: it is paused. `None`: it has that of the queue.
    ///
    /// # Errors
    ///
    /// [`Store`](ErrorKind::Store) and [`Unanswered`](ErrorKind::Unanswered) if the store fails;
    /// [`Invalid`](ErrorKind::Invalid) for a key that cannot be.
    pub async fn key_limit(&self, key: impl Into<String>) -> Result<Option<u32>, Error> {
        match self.read(Read::KeyLimit(Key::new(key.into())?)).await? {
            Reply::KeyLimit(limit) => Ok(limit),
            other => Err(unexpected(&other)),
        }
    }

    /// A task with its payload, its result and what it waits for; none: there is no such task.
    ///
    /// # Errors
    ///
    /// [`Store`](ErrorKind::Store) and [`Unanswered`](ErrorKind::Unanswered) if the store fails.
    pub async fn task(&self, id: TaskId) -> Result<Option<Stored>, Error> {
        match self.read(Read::Tasks(vec![id])).await? {
            Reply::Tasks(tasks) => Ok(tasks.into_iter().next().flatten()),
            other => Err(unexpected(&other)),
        }
    }

    /// Waits until a task has ended, and gives its result. It hears at once of what a worker of this process has
    /// done, and looks every two seconds else.
    ///
    /// # Errors
    ///
    /// [`Failed`](ErrorKind::Failed) and [`Cancelled`](ErrorKind::Cancelled) if it did not end well, with why;
    /// [`Mismatch`](ErrorKind::Mismatch) if the result is not of the type; [`Missing`](ErrorKind::Missing) if there
    /// is no such task; else as [`task`](Self::task).
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn wait<T: DeserializeOwned>(&self, id: TaskId) -> Result<T, Error> {
        let stored = self.ended(id).await?;
        let result = stored.result.unwrap_or_default();
        serde_json::from_str(result.as_str())
            .map_err(|error| Error::mismatch(format!("the result of task {id} is of another type"), error))
    }

    /// Waits until a task has ended, and gives all that is stored of it, however it ended.
    ///
    /// # Errors
    ///
    /// [`Missing`](ErrorKind::Missing) if there is no such task; else as [`task`](Self::task).
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn wait_end(&self, id: TaskId) -> Result<Stored, Error> {
        let mut look = LOOK.0;
        loop {
            let mut completed = std::pin::pin!(self.shared.completed.notified());
            completed.as_mut().enable();
            let stored = self.task(id).await?.filter(|stored| stored.task.state != State::Purged);
            let stored = stored.ok_or_else(|| Error::missing(id))?;
            if stored.task.state.is_ended() {
                return Ok(stored);
            }
            tokio::select! {
                () = completed => {}
                () = host::sleep(&*self.shared.host, look) => look = (look * 2).min(LOOK.1),
            }
        }
    }

    async fn ended(&self, id: TaskId) -> Result<Stored, Error> {
        let stored = self.wait_end(id).await?;
        let why = stored.task.error.as_deref().unwrap_or("it does not say why");
        match stored.task.state {
            State::Failed => Err(Error::new(ErrorKind::Failed, format!("task {id} failed: {why}"))),
            State::Cancelled => {
                Err(Error::new(ErrorKind::Cancelled, format!("task {id} was cancelled: {why}")))
            }
            _ => Ok(stored),
        }
    }

    /// A page of selected tasks by id, behind one of them if that is given: at most `limit`, which is 1,000 at most.
    /// With payloads and results if `bodies`. [`Page::next`] says where the next one begins.
    ///
    /// # Errors
    ///
    /// [`Invalid`](ErrorKind::Invalid) for a selector or a limit that cannot be; else as [`task`](Self::task).
    pub async fn page(
        &self,
        selector: &Selector,
        after: Option<TaskId>,
        limit: u32,
        bodies: bool,
    ) -> Result<Page, Error> {
        match self.read(Read::Page { selector: selector.clone(), after, limit, bodies }).await? {
            Reply::Page(page) => Ok(page),
            other => Err(unexpected(&other)),
        }
    }

    /// How the queue is: settings, counts by kind and state, workers, what is paused, what is next.
    /// [`QueueStatus`](crate::QueueStatus) says what follows from that.
    ///
    /// # Errors
    ///
    /// As [`task`](Self::task).
    pub async fn overview(&self) -> Result<Overview, Error> {
        match self.read(Read::Overview).await? {
            Reply::Overview(overview) => Ok(*overview),
            other => Err(unexpected(&other)),
        }
    }

    /// The store's clock.
    async fn now(&self) -> Result<Micros, Error> {
        match self.read(Read::Clock).await? {
            Reply::Clock(now) => Ok(now),
            other => Err(unexpected(&other)),
        }
    }

    /// The head of the line: of those that are ready, the most urgent first, at most `limit`, which is 1,000 at most. A
    /// worker takes those of its kinds in this order.
    ///
    /// # Errors
    ///
    /// [`Invalid`](ErrorKind::Invalid) for another limit; [`Missing`](ErrorKind::Missing) if there is no such queue;
    /// else as [`task`](Self::task).
    pub async fn line(&self, limit: u32) -> Result<Vec<Task>, Error> {
        match self.read(Read::Line(limit)).await? {
            Reply::Line(tasks) => Ok(tasks),
            other => Err(unexpected(&other)),
        }
    }

    /// Workers that live, or died within the last hour.
    ///
    /// # Errors
    ///
    /// As [`task`](Self::task).
    pub async fn workers(&self) -> Result<Vec<Worker>, Error> {
        match self.read(Read::Workers).await? {
            Reply::Workers(workers) => Ok(workers),
            other => Err(unexpected(&other)),
        }
    }

    /// How long the runs of a kind waited and took, hour by hour, from the hour on that was so long ago. They are kept
    /// for [a week](crate::KEEP_TIMES). Hours in which nothing was begun or ended are left out; `+=` makes one of
    /// several.
    ///
    /// # Errors
    ///
    /// [`Missing`](ErrorKind::Missing) if there is no such queue; else as [`task`](Self::task).
    pub async fn times(&self, kind: &Kind, since: Duration) -> Result<Vec<Times>, Error> {
        let from = self.now().await? - Micros::from_duration(since);
        match self.read(Read::Times { kind: kind.clone(), from }).await? {
            Reply::Times(times) => Ok(times),
            other => Err(unexpected(&other)),
        }
    }

    /// A page of the results of the upstreams of a task.
    pub(crate) async fn inputs(&self, down: TaskId, after: Option<TaskId>) -> Result<Inputs, Error> {
        match self.read(Read::Inputs { down, after }).await? {
            Reply::Inputs(inputs) => Ok(inputs),
            other => Err(unexpected(&other)),
        }
    }
}

/// JSON as a value.
pub(crate) fn parse<T: DeserializeOwned>(json: &Json) -> Result<T, serde_json::Error> {
    serde_json::from_str(json.as_str())
}
