//! Encoding of payloads and results, such as encryption.

use std::{
    error::Error as StdError,
    fmt::{self, Display},
    sync::Arc,
};

use interval_queue_task_contract::{Input, Json, NewTask, State, Stored};

use crate::error::Error;

/// Encodes payloads and results before they are stored, for example to encrypt or to compress them:
/// see [`Builder::codec`](crate::Builder::codec).
///
/// Values are decoded in the form in which they were encoded, possibly by another process or an
/// older version: encode the number of the key along with the value. Values that were stored before
/// the queue had a codec, or by a program without it, are decoded, too. To accept them, return them
/// unchanged.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
/// use interval_queue_tasks::{Codec, Json, Task, TaskQueue, connect};
///
/// /// Stands for a cipher.
/// struct Reversed;
///
/// impl Codec for Reversed {
///     fn encode(&self, plain: &Json) -> Result<Json, Box<dyn std::error::Error + Send + Sync>> {
///         Ok(Json::of(&plain.as_str().chars().rev().collect::<String>())?)
///     }
///
///     fn decode(&self, encoded: &Json) -> Result<Json, Box<dyn std::error::Error + Send + Sync>> {
///         let text: String = serde_json::from_str(encoded.as_str())?;
///         Ok(Json::new(text.chars().rev().collect::<String>())?)
///     }
/// }
///
/// let store = connect("memory:").await?;
/// let queue = TaskQueue::builder("mail").codec(Reversed).open(&store).await?;
/// let id = queue.add(Task::new("send", "Ada")).await?.id();
/// let payload = |stored: Option<interval_queue_tasks::Stored>| stored?.payload;
/// assert_eq!(payload(queue.task(id).await?), Some(Json::of("Ada")?));
///
/// // Without the codec:
/// let queue = TaskQueue::builder("mail").open(&store).await?;
/// assert_eq!(payload(queue.task(id).await?), Some(Json::of("\"adA\"")?));
/// # Ok(())
/// # }
/// ```
pub trait Codec: Send + Sync + 'static {
    /// Encodes a payload or result. Called on the threads of async tasks, so it must not block.
    ///
    /// # Errors
    ///
    /// A task whose payload is not encoded is not added. A run whose result is not encoded fails.
    fn encode(&self, plain: &Json) -> Result<Json, Box<dyn StdError + Send + Sync>>;

    /// Decodes what [`encode`](Self::encode) returned, in the same way.
    ///
    /// # Errors
    ///
    /// A task whose payload is not decoded fails for good with this text, and keeps its payload.
    /// Reads return a value that is not decoded as it is stored, with the error.
    fn decode(&self, encoded: &Json) -> Result<Json, Box<dyn StdError + Send + Sync>>;
}

/// Without a codec, values stay as they are.
#[derive(Clone, Default)]
pub(crate) struct QueueCodec(Option<Arc<dyn Codec>>);

impl QueueCodec {
    pub(crate) fn new(codec: impl Codec) -> Self {
        Self(Some(Arc::new(codec)))
    }

    /// `name` names the value in an error, such as "the result".
    pub(crate) fn encode(&self, name: impl Display, plain: Json) -> Result<Json, Error> {
        let Some(codec) = &self.0 else { return Ok(plain) };
        codec.encode(&plain).map_err(|error| Error::codec(format!("{name} cannot be encoded"), error))
    }

    /// For a task or the template of a schedule.
    pub(crate) fn encode_task(&self, name: impl Display, mut task: NewTask) -> Result<NewTask, Error> {
        task.payload = self.encode(format_args!("the payload of {name}"), task.payload)?;
        Ok(task)
    }

    /// `None`: there is no codec.
    pub(crate) fn decode(&self, name: impl Display, encoded: &Json) -> Result<Option<Json>, Error> {
        let plain = self.0.as_ref().map(|codec| codec.decode(encoded)).transpose();
        plain.map_err(|error| Error::codec(format!("{name} cannot be decoded"), error))
    }

    pub(crate) fn decode_input(&self, mut input: Input) -> Result<Input, Error> {
        if let Some(result) = &mut input.result
            && let Some(plain) = self.decode(format_args!("the result of task {}", input.up), result)?
        {
            *result = plain;
        }
        Ok(input)
    }

    /// A value that cannot be decoded stays, with the error.
    pub(crate) fn decode_stored(&self, mut stored: Stored) -> Stored {
        let id = stored.task.id;
        for (name, value) in [("payload", &mut stored.payload), ("result", &mut stored.result)] {
            let Some(value) = value.as_mut().filter(|_| stored.task.state != State::Purged) else { continue };
            match self.decode(format_args!("the {name} of task {id}"), value) {
                Ok(None) => {}
                Ok(Some(plain)) => *value = plain,
                Err(error) => _ = stored.undecoded.get_or_insert(error.to_string()),
            }
        }
        stored
    }
}

impl fmt::Debug for QueueCodec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Codec" } else { "None" })
    }
}
