//! The public type: where a command runs, and on which thread.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use async_trait::async_trait;
use interval_queue_contract::{
    Changes, Command, QueueName, Reply, SharedState, StateError, StateErrorKind, rules,
};
use tokio::{sync::Mutex, task::spawn_blocking};

use crate::{Builder, Clock, clock, lock::Exclusion, place::Place, store::Store};

/// Queues in one JSON file that processes share. See the [crate's documentation](crate).
///
/// Cloning gives another handle to the same open file. One per process and file is enough; several are as
/// safe.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use interval_queue_contract::{Change, Command, MaxRunning, Memory, Micros, OnExisting, QueueName, SharedState};
/// use interval_queue_json_file::JsonFileState;
///
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("queues.json");
/// let state = JsonFileState::open(&path).await?;
/// let open = Change::Open {
///     interval: Some(Micros::from_millis(250)),
///     max_running: MaxRunning::Keep,
///     on_existing: OnExisting::Replace,
/// };
/// state.apply(&QueueName::new("mail")?, Command::Change(open, Memory::default())).await?;
/// assert!(std::fs::read_to_string(&path)?.contains(r#""interval": 250000"#));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct JsonFileState {
    place: Arc<Place>,
    /// Keeps the threads of this process apart, which share the descriptor and with it the file's lock. An
    /// async one, so that commands that wait for each other occupy no thread.
    store: Arc<Mutex<Store>>,
    #[cfg(feature = "watch")]
    watching: Arc<crate::watch::Watching>,
}

impl JsonFileState {
    /// Begins to open the state file at `path`, which need not be there, in a directory that must be.
    pub fn builder(path: impl Into<PathBuf>) -> Builder {
        Builder::new(path.into())
    }

    /// Opens the state file at `path` with the defaults of the [`Builder`].
    ///
    /// # Errors
    ///
    /// As [`Builder::open`].
    ///
    /// # Cancel safety
    ///
    /// As [`Builder::open`].
    pub async fn open(path: impl Into<PathBuf>) -> Result<Self, StateError> {
        Self::builder(path).open().await
    }

    /// Where the file really is: absolute and without symbolic links.
    pub fn path(&self) -> &Path {
        self.place.path()
    }

    pub(crate) async fn open_with(
        options: Builder,
        exclusion: &'static dyn Exclusion,
    ) -> Result<Self, StateError> {
        blocking(move || {
            let place = Place::find(&options, exclusion)?;
            let store = Store::open(&place, &options)?;
            Ok(Self {
                place: Arc::new(place),
                store: Arc::new(Mutex::new(store)),
                #[cfg(feature = "watch")]
                watching: Arc::default(),
            })
        })
        .await
    }
}

/// # Cancel safety
///
/// A command that was begun is carried through, whether or not somebody still waits for its reply; one that
/// waits for others of this process is not begun.
#[async_trait]
impl SharedState for JsonFileState {
    async fn apply(&self, queue: &QueueName, command: Command) -> Result<Reply, StateError> {
        let place = self.place.clone();
        if matches!((&command, place.clock()), (Command::Read, Clock::Host)) {
            let queue = queue.clone();
            return blocking(move || {
                let mut record = place.look(|mut document| document.take(place.path(), &queue))?;
                rules::apply(&mut record, &clock::host(), &Command::Read)
            })
            .await;
        }
        // The wait for commands of this process counts too, so that a queue of them does not wait one
        // time-out each.
        let patience = place.patience();
        let mut store = self.store.clone().lock_owned().await;
        if let Some(result) = store.carry_out_at_once(queue, &command) {
            return result;
        }
        let queue = queue.clone();
        blocking(move || store.carry_out(patience, &queue, &command)).await
    }

    async fn queues(&self) -> Result<Vec<QueueName>, StateError> {
        let place = self.place.clone();
        blocking(move || place.look(|document| Ok(document.names()))).await
    }

    #[cfg(feature = "watch")]
    async fn changes(&self, queue: &QueueName) -> Result<Changes, StateError> {
        let (place, watching, queue) = (self.place.clone(), self.watching.clone(), queue.clone());
        blocking(move || watching.watch(&place, queue)).await
    }

    #[cfg(not(feature = "watch"))]
    async fn changes(&self, _: &QueueName) -> Result<Changes, StateError> {
        let text = format!(
            "{} is not watched: use the feature \"json-file-watch\" of interval-queue, \"watch\" of interval-queue-json-file, \
             or leave wake-ups off",
            self.place.path().display()
        );
        Err(StateError::new(StateErrorKind::Unsupported, text))
    }
}

impl fmt::Debug for JsonFileState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JsonFileState").field("place", &self.place).finish_non_exhaustive()
    }
}

/// Runs what may block where it may. Once begun it is carried through, also if nobody waits for it any more.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StateError> + Send + 'static,
) -> Result<T, StateError> {
    match spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(error) => Err(StateError::new(
                StateErrorKind::Unreachable,
                "the runtime is shutting down: the command was not begun",
            )
            .with_source(error)),
        },
    }
}
