//! `TaskKind`: a kind with the types of its payload and its result.

use interval_queue_task_contract::TaskId;
use serde::{Serialize, de::DeserializeOwned};

use crate::{
    Context, Inputs, Task, TaskError, TaskQueue, WorkerBuilder,
    error::{Error, ErrorKind},
    queries::result_of,
};

/// A kind with the types of its payload and its result, so that the compiler checks producers,
/// handlers and readers against each other. The stored task is that of [`Task::new`] with
/// [`KIND`](Self::KIND): both ways can be mixed.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use interval_queue_tasks::{Context, Task, TaskError, TaskKind, TaskQueue, Worker};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize)]
/// struct SendMail {
///     to: String,
/// }
///
/// impl TaskKind for SendMail {
///     const KIND: &'static str = "send mail";
///     type Payload = Self;
///     type Output = u32;
/// }
///
/// async fn send(_: Context, mail: SendMail) -> Result<u32, TaskError> {
///     Ok(mail.to.len() as u32)
/// }
///
/// let queue = TaskQueue::builder("mails").connect("memory:").await?;
/// let id = queue.add(Task::of::<SendMail>(&SendMail { to: "Ada".into() }).priority(1)).await?.id();
/// Worker::builder(&queue).handler_of::<SendMail, _, _>(send).build()?.run_until_empty().await?;
/// assert_eq!(queue.wait_of::<SendMail>(id).await?, 3);
/// # Ok(())
/// # }
/// ```
///
/// The types are those of this program, not of the store: a payload that another version stored may
/// not deserialize. Add fields with `#[serde(default)]`, and give a changed payload a new kind.
pub trait TaskKind {
    /// Selects the handler: 1 to 200 bytes of printable text, checked when it is used.
    const KIND: &'static str;
    /// The payload.
    type Payload: Serialize + DeserializeOwned + Send + 'static;
    /// The result of a run that is done.
    type Output: Serialize + DeserializeOwned + Send + 'static;
}

impl Task {
    /// A task of this kind, as [`new`](Self::new) makes it.
    pub fn of<K: TaskKind>(payload: &K::Payload) -> Self {
        Self::new(K::KIND, payload)
    }
}

impl<S: Send + Sync + 'static> WorkerBuilder<S> {
    /// Handles tasks of this kind, as [`handler`](Self::handler). To complete runs within a
    /// transaction, use that method.
    pub fn handler_of<K, E, Fut>(
        self,
        f: impl Fn(Context<S>, K::Payload) -> Fut + Send + Sync + 'static,
    ) -> Self
    where
        K: TaskKind,
        E: Into<TaskError> + Send + 'static,
        Fut: Future<Output = Result<K::Output, E>> + Send + 'static,
    {
        self.handler(K::KIND, f)
    }
}

impl TaskQueue {
    /// Waits for a task of this kind to end and returns its result.
    ///
    /// # Errors
    ///
    /// As [`wait`](Self::wait), and [`Mismatch`](ErrorKind::Mismatch) if the task is of another
    /// kind.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn wait_of<K: TaskKind>(&self, id: TaskId) -> Result<K::Output, Error> {
        let stored = self.ended(id).await?;
        if stored.task.kind.as_str() != K::KIND {
            let text = format!("task {id} is of kind {:?}, not {:?}", stored.task.kind.as_str(), K::KIND);
            return Err(Error::new(ErrorKind::Mismatch, text));
        }
        result_of(stored)
    }
}

impl Inputs {
    /// The result of the input with this name, whose task is of this kind.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub fn get_of<K: TaskKind>(&self, name: &str) -> Result<K::Output, Error> {
        self.get(name)
    }
}
