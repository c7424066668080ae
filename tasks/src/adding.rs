//! How tasks are added.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use futures::{
    FutureExt, Stream, StreamExt,
    stream::{self, BoxStream},
};
use interval_queue::Micros;
use interval_queue_task_contract::{Add, Added, Command, NewTask, Reply};
use tokio::sync::RwLock;

use crate::{TaskQueue, error::Error, queue::unexpected, task::Task};

/// How many tasks of a stream travel in one command.
const BATCH: usize = 500;
/// How many commands of a stream are under way at once.
const IN_FLIGHT: usize = 4;

impl TaskQueue {
    /// Adds a task. It is stored when this returns, and survives what the store survives.
    ///
    /// A store that does not answer is asked again, under the same id, so that the task is added once; and for as
    /// long as the [patience](crate::Builder::patience) says.
    ///
    /// # Errors
    ///
    /// [`Invalid`](crate::ErrorKind::Invalid) for a task that cannot be; [`Missing`](crate::ErrorKind::Missing) if it
    /// names an upstream that is not there; [`Conflict`](crate::ErrorKind::Conflict) for a unique name that is taken,
    /// if the task [says so](Task::on_conflict), and if it was first sent more than ten minutes ago and is not there:
    /// then nobody can tell whether it has run. [`Unanswered`](crate::ErrorKind::Unanswered): it may have been added;
    /// to add a clone of the same task again is safe. [`Store`](crate::ErrorKind::Store): it was not added.
    ///
    /// # Cancel safety
    ///
    /// Dropped, it was added or not; to add a clone of the same task again is safe.
    pub async fn add(&self, task: Task) -> Result<Added, Error> {
        let added = self.add_all([task]).await?;
        added.first().copied().ok_or_else(|| Error::invalid("the store added nothing"))
    }

    /// Adds tasks, at most 20,000: all of them or none. What became of each is told in their order.
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add).
    ///
    /// # Cancel safety
    ///
    /// As [`add`](Self::add).
    pub async fn add_all(&self, tasks: impl IntoIterator<Item = Task>) -> Result<Vec<Added>, Error> {
        let tasks: Vec<Task> = tasks.into_iter().collect();
        let host = &self.shared.host;
        let now = host.now();
        let first = tasks.iter().max_by_key(|task| task.age(now)).cloned();
        let age =
            || first.as_ref().map_or(Micros::ZERO, |first| Micros::from_duration(first.age(host.now())));
        let new: Arc<[NewTask]> = tasks.into_iter().map(Task::finish).collect::<Result<_, _>>()?;
        let sequence = self.shared.sequence(new.len());
        let add = || Command::Add(Add { tasks: new.clone(), sequence, age: age() });
        let reply = self.shared.repeat("the add", add).await?;
        let Reply::Added(added) = reply else { return Err(unexpected(&reply)) };
        new.iter().zip(&added).for_each(|(new, added)| self.shared.telemetry.added(new, *added));
        Ok(added)
    }

    /// Prepares tasks, to be added within a transaction of one's own: see [together with your own
    /// rows](crate::_guide::together). Nothing is added yet. A transaction that is tried again, as its commit got no
    /// answer, prepares clones of the same tasks again, so that they are added once.
    ///
    /// # Errors
    ///
    /// [`Invalid`](crate::ErrorKind::Invalid) for a task that cannot be.
    pub fn prepare(&self, tasks: impl IntoIterator<Item = Task>) -> Result<Add, Error> {
        let now = self.shared.host.now();
        let (mut age, mut new) = (Micros::ZERO, Vec::new());
        for task in tasks {
            age = age.max(Micros::from_duration(task.age(now)));
            new.push(task.finish()?);
        }
        let sequence = self.shared.sequence(new.len());
        let add = Add { tasks: new.into(), sequence, age };
        add.check()?;
        Ok(add)
    }

    /// Adds the tasks of a stream, in memory that is bounded by about two thousand of them. Those that are ready travel
    /// together, in batches that are added whole; several are under way at once. What became of each is told in their
    /// order. After an error nothing more is added.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), interval_queue_tasks::Error> {
    /// # use interval_queue_tasks::{Task, TaskQueue};
    /// use futures::{TryStreamExt, stream};
    ///
    /// # let queue = TaskQueue::builder("pages").connect("memory:").await?;
    /// let tasks = stream::iter(0..10_000).map(|page| Task::new("fetch", &page));
    /// # use futures::StreamExt;
    /// let added = queue.add_stream(tasks).try_fold(0, async |count, _| Ok(count + 1)).await?;
    /// assert_eq!(added, 10_000);
    /// # Ok(())
    /// # }
    /// ```
    pub fn add_stream<'a>(&self, tasks: impl Stream<Item = Task> + Send + 'a) -> AddStream<'a> {
        let queue = self.clone();
        // A task may wait for one of an earlier batch, or run after it.
        let order = Arc::new(RwLock::new(()));
        let batches = tasks.ready_chunks(BATCH).map(move |batch| {
            let (queue, order) = (queue.clone(), order.clone());
            async move {
                if batch.iter().any(|task| task.has_edges() || task.is_ordered()) {
                    let _alone = order.write().await;
                    queue.add_all(batch).await
                } else {
                    let _beside = order.read().await;
                    queue.add_all(batch).await
                }
            }
            .boxed()
        });
        let added = batches.buffered(IN_FLIGHT).flat_map(|added| match added {
            Ok(added) => stream::iter(added.into_iter().map(Ok).collect::<Vec<_>>()),
            Err(error) => stream::iter(vec![Err(error)]),
        });
        AddStream { added: Some(added.boxed()) }
    }
}

/// What becomes of the tasks of a stream, see [`TaskQueue::add_stream`].
#[must_use = "nothing is added unless it is polled"]
pub struct AddStream<'a> {
    /// None after an error.
    added: Option<BoxStream<'a, Result<Added, Error>>>,
}

impl std::fmt::Debug for AddStream<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AddStream").finish_non_exhaustive()
    }
}

impl Stream for AddStream<'_> {
    type Item = Result<Added, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(added) = &mut self.added else { return Poll::Ready(None) };
        let next = added.poll_next_unpin(cx);
        if matches!(next, Poll::Ready(Some(Err(_)))) {
            self.added = None;
        }
        next
    }
}
