//! [`TaskQueues`]: the queues of a store, to read and control them.

use std::{sync::Arc, time::Duration};

use interval_queue::{QueueName, SharedState, Store};
use interval_queue_task_contract::{Overview, TaskStore};

use crate::{
    TaskQueue,
    builder::DEFAULT_TIMEOUT,
    codec::{Codec, QueueCodec},
    error::{Error, ErrorKind},
};

/// The queues of tasks in a store, for views and operators: it creates no queue.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), interval_queue_tasks::Error> {
/// use interval_queue_tasks::{Task, TaskQueue, TaskQueues, connect};
///
/// let store = connect("memory:").await?;
/// let mails = TaskQueue::builder("mails").open(&store).await?;
/// mails.add(Task::new("welcome", &"Ada")).await?;
///
/// let queues = TaskQueues::open(&store).await?;
/// for name in queues.names().await? {
///     let (queue, overview) = queues.find(&name).await?.expect("it was listed");
///     assert_eq!((queue.upcoming(10).await?.len(), overview.workers), (1, 0));
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct TaskQueues {
    tasks: Arc<dyn TaskStore>,
    pace: Arc<dyn SharedState>,
    timeout: Duration,
    codec: QueueCodec,
}

impl TaskQueues {
    /// Opens the store's tasks.
    ///
    /// # Errors
    ///
    /// [`Store`](ErrorKind::Store); of kind [`Unsupported`](interval_queue::StateErrorKind) if the
    /// store keeps no tasks.
    pub async fn open(store: impl Into<Store>) -> Result<Self, Error> {
        let store = store.into();
        let (tasks, pace) = (store.tasks().await?, store.rates().await?);
        Ok(Self { tasks, pace, timeout: DEFAULT_TIMEOUT, codec: QueueCodec::default() })
    }

    /// How long each call of the [found](Self::find) queues retries if the store does not answer,
    /// at most nine minutes. Default: 30 s.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// The [codec](crate::Builder::codec) of the [found](Self::find) queues. Default: none.
    #[must_use]
    pub fn codec(self, codec: impl Codec) -> Self {
        Self { codec: QueueCodec::new(codec), ..self }
    }

    /// The names of the queues, sorted.
    ///
    /// # Errors
    ///
    /// [`Store`](ErrorKind::Store), without retries.
    pub async fn names(&self) -> Result<Vec<QueueName>, Error> {
        Ok(self.tasks.queues().await?)
    }

    /// A queue with its overview; none is created. `None`: it has no tasks, settings or schedules.
    ///
    /// # Errors
    ///
    /// [`Store`](ErrorKind::Store) and [`Unanswered`](ErrorKind::Unanswered).
    pub async fn find(&self, name: &QueueName) -> Result<Option<(TaskQueue, Overview)>, Error> {
        let (tasks, pace) = (self.tasks.clone(), self.pace.clone());
        let queue = TaskQueue::handle(name.clone(), tasks, pace, self.timeout, None, self.codec.clone())?;
        match queue.overview().await {
            Ok(overview) => {
                queue.shared.learn(&overview.settings);
                Ok(Some((queue, overview)))
            }
            Err(error) if error.kind() == ErrorKind::Missing => Ok(None),
            Err(error) => Err(error),
        }
    }
}
