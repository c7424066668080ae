//! Adding tasks: a batch, a stream, or prepared for the application's transaction.

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

const BATCH_SIZE: usize = 500;
const MAX_IN_FLIGHT: usize = 4;

impl TaskQueue {
    /// Adds a task. Once this returns, the task is as durable as the store.
    ///
    /// If the store does not answer, the call retries until its
    /// [timeout](crate::Builder::timeout) has passed, with the same id, so that the task is added once.
    ///
    /// # Errors
    ///
    /// [`Invalid`](crate::ErrorKind::Invalid) for an invalid task;
    /// [`Codec`](crate::ErrorKind::Codec) if the queue's codec does not encode its payload;
    /// [`Missing`](crate::ErrorKind::Missing) if an upstream does not exist;
    /// [`Conflict`](crate::ErrorKind::Conflict) for a taken unique name, if the task [rejects
    /// that](Task::on_conflict), or if the task was first sent over ten minutes ago and is not
    /// stored: it may have run and been deleted. [`Unanswered`](crate::ErrorKind::Unanswered): the
    /// task may have been added. [`Store`](crate::ErrorKind::Store): it was not.
    ///
    /// # Cancel safety
    ///
    /// If dropped or unanswered, the task may have been added; adding a clone again is safe.
    pub async fn add(&self, task: Task) -> Result<Added, Error> {
        let added = self.add_all([task]).await?;
        added.first().copied().ok_or_else(|| Error::invalid("the store added nothing"))
    }

    /// Adds up to 20,000 tasks, all or none. Results are in their order.
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
        let new: Arc<[NewTask]> =
            tasks.into_iter().map(|task| self.finish(task)).collect::<Result<_, _>>()?;
        let sequence = self.shared.sequence(new.len());
        let add = || Command::Add(Add { tasks: new.clone(), sequence, age: age() });
        let reply = self.shared.retry("the add", add).await?;
        let Reply::Added(added) = reply else { return Err(unexpected(&reply)) };
        new.iter().zip(&added).for_each(|(new, added)| self.shared.telemetry.added(new, *added));
        Ok(added)
    }

    /// Prepares tasks for adding within your own transaction: see
    /// [transactions](crate::_guide::transactions). If a commit got no answer, retry the
    /// transaction with clones of the same tasks: they are added once.
    ///
    /// # Errors
    ///
    /// [`Invalid`](crate::ErrorKind::Invalid) for an invalid task; [`Codec`](crate::ErrorKind::Codec)
    /// if the queue's codec does not encode its payload.
    pub fn prepare(&self, tasks: impl IntoIterator<Item = Task>) -> Result<Add, Error> {
        let now = self.shared.host.now();
        let (mut age, mut new) = (Micros::ZERO, Vec::new());
        for task in tasks {
            age = age.max(Micros::from_duration(task.age(now)));
            new.push(self.finish(task)?);
        }
        let sequence = self.shared.sequence(new.len());
        let add = Add { tasks: new.into(), sequence, age };
        add.check()?;
        Ok(add)
    }

    fn finish(&self, task: Task) -> Result<NewTask, Error> {
        let new = task.finish()?;
        #[cfg(feature = "opentelemetry")]
        let new = {
            let trace = new.trace.or_else(crate::telemetry::trace_context::current);
            NewTask { trace, ..new }
        };
        let id = new.id;
        self.shared.codec.encode_task(format_args!("task {id}"), new)
    }

    /// Adds the tasks of a stream, with about 2,000 in memory at most. Tasks that are ready
    /// together form a batch, added completely or not at all; several batches are under way at
    /// once. Results are in the order of the tasks. After an error no further batch is sent.
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
        // A batch with edges or ordered tasks may depend on earlier batches: it runs exclusively.
        let order = Arc::new(RwLock::new(()));
        let batches = tasks.ready_chunks(BATCH_SIZE).map(move |batch| {
            let (queue, order) = (queue.clone(), order.clone());
            async move {
                if batch.iter().any(|task| task.has_edges() || task.is_ordered()) {
                    let _exclusive = order.write().await;
                    queue.add_all(batch).await
                } else {
                    let _shared = order.read().await;
                    queue.add_all(batch).await
                }
            }
            .boxed()
        });
        let added = batches.buffered(MAX_IN_FLIGHT).flat_map(|added| match added {
            Ok(added) => stream::iter(added.into_iter().map(Ok).collect::<Vec<_>>()),
            Err(error) => stream::iter(vec![Err(error)]),
        });
        AddStream { added: Some(added.boxed()) }
    }
}

/// Results of [`TaskQueue::add_stream`], in the order of the tasks.
#[must_use = "nothing is added unless it is polled"]
pub struct AddStream<'a> {
    /// `None` after an error.
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
