//! The backend: one command is lock, read, apply, replace.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use async_trait::async_trait;
use interval_queue_contract::{Command, QueueName, Reply, SharedState, StateError, StateErrorKind, rules};
use tokio::{sync::Mutex, task::spawn_blocking};

use crate::{
    Builder, Clock, Fsync, clock,
    document::Document,
    file::{Contents, Flush, StateFile},
    lock::{Exclusion, LockFile, Patience},
    path::{beside, resolve},
    probe::probe,
};

/// Queues in one JSON file that processes share. See the [crate's documentation](crate).
///
/// Cloning gives another handle to the same open file. One per process and file is enough; several are as safe.
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
    store: Arc<Store>,
    /// Keeps the threads of this process apart, which share the descriptor and with it the file's lock. An async one, so
    /// that commands that wait for each other occupy no thread.
    lock: Arc<Mutex<LockFile>>,
}

/// What never changes once the file is open.
#[derive(Debug)]
struct Store {
    file: StateFile,
    clock: Clock,
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
        self.store.file.path()
    }

    pub(crate) async fn open_with(
        options: Builder,
        exclusion: &'static dyn Exclusion,
    ) -> Result<Self, StateError> {
        blocking(move || {
            let path = resolve(&options.path)?;
            let lock_path = beside(&path, ".lock");
            let flush = match (options.fsync, options.clock) {
                (Fsync::Always, _) => Flush::ContentsAndName,
                // A network client reports a full disk only then, and an incomplete file must not take the place.
                (Fsync::Never, Clock::FileServer) => Flush::Contents,
                (Fsync::Never, Clock::Host) => Flush::Nothing,
            };
            let store = Store { file: StateFile::new(path, flush), clock: options.clock };
            // Before anything is created beside a file that is somebody else's.
            parse(&store.file, &store.file.read()?, None)?;
            let mut lock = LockFile::new(lock_path, options.lock_timeout, exclusion);
            probe(&mut lock)?;
            Ok(Self { store: Arc::new(store), lock: Arc::new(Mutex::new(lock)) })
        })
        .await
    }
}

impl Store {
    /// Replaces of the file only what the command changes of one queue.
    fn carry_out(
        &self,
        lock: &mut LockFile,
        patience: Patience,
        queue: &QueueName,
        command: &Command,
    ) -> Result<Reply, StateError> {
        let held = lock.acquire(patience)?;
        let contents = self.file.read()?;
        let mut document = parse(&self.file, &contents, Some(queue))?;
        let mut record = document.take(self.file.path(), queue)?;
        let reading = self.clock.read(&held)?;
        let reply = rules::apply(&mut record, &reading, command)?;
        if let (Some(record), false) = (record, matches!(command, Command::Read)) {
            document.put(queue.clone(), record);
            let mut bytes = Vec::new();
            document.write_to(&mut bytes)?;
            self.file.replace(&contents, &bytes)?;
        }
        Ok(reply)
    }

    /// Looks without the lock: the file is whole at every instant.
    fn look(&self, queue: &QueueName) -> Result<Reply, StateError> {
        let contents = self.file.read()?;
        let mut record = parse(&self.file, &contents, Some(queue))?.take(self.file.path(), queue)?;
        rules::apply(&mut record, &clock::host(), &Command::Read)
    }

    fn queues(&self) -> Result<Vec<QueueName>, StateError> {
        Ok(parse(&self.file, &self.file.read()?, None)?.names())
    }
}

#[async_trait]
impl SharedState for JsonFileState {
    async fn apply(&self, queue: &QueueName, command: Command) -> Result<Reply, StateError> {
        let (store, queue) = (self.store.clone(), queue.clone());
        if matches!((&command, store.clock), (Command::Read, Clock::Host)) {
            return blocking(move || store.look(&queue)).await;
        }
        // The wait for commands of this process counts too, so that a queue of them does not wait one time-out each.
        let patience = Patience::begin();
        let mut lock = self.lock.clone().lock_owned().await;
        blocking(move || store.carry_out(&mut lock, patience, &queue, &command)).await
    }

    async fn queues(&self) -> Result<Vec<QueueName>, StateError> {
        let store = self.store.clone();
        blocking(move || store.queues()).await
    }
}

impl fmt::Debug for JsonFileState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JsonFileState").field("store", &self.store).finish_non_exhaustive()
    }
}

fn parse<'a>(
    file: &StateFile,
    contents: &'a Contents,
    wanted: Option<&QueueName>,
) -> Result<Document<'a>, StateError> {
    match &contents.bytes {
        Some(bytes) => Document::parse(file.path(), bytes, wanted),
        None => Ok(Document::empty()),
    }
}

/// Runs what may block where it may. Once begun it is carried through, also if nobody waits for it any more.
async fn blocking<T: Send + 'static>(
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
