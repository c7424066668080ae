//! Stored tasks in a directory: one file each, found by an index.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use interval_queue_contract::{Changes, Micros, QueueName, StateError};
use interval_queue_store::files::blocking;
use interval_queue_task_contract::{Command, Reply, TaskStore};
use tokio::{sync::oneshot, time::timeout};

mod document;
mod edit_scan;
mod error;
mod index;
mod leased_files;
mod names;
mod pending_files;
mod quarantine;
mod queue_file;
mod rebuild;
mod reconcile;
mod redo_entry;
mod rows;
mod session;
mod transaction;
mod watch;
mod writer;

pub(crate) use self::error::TransactionError;
use self::{
    session::TaskClock,
    watch::Watchers,
    writer::{Request, Writer},
};
use crate::{DirectoryStore, store::Location};

/// Bounds the time until the writer thread reaches a command that need not wait for the lock.
const MIN_REPLY_TIMEOUT: Duration = Duration::from_millis(250);

/// Stored tasks in one directory that processes share. See the [crate's documentation](crate).
///
/// Cloning gives another handle to the same directory. One per process and directory is enough;
/// commands of one handle share transactions.
#[derive(Clone)]
pub struct DirectoryTasks {
    location: Arc<Location>,
    writer: Writer,
    watchers: Arc<Watchers>,
}

impl DirectoryTasks {
    /// Opens the directory at `path` with the defaults of the [`Builder`](crate::Builder).
    ///
    /// # Errors
    ///
    /// The errors of [`Builder::open`](crate::Builder::open) and of [`on`](Self::on).
    pub async fn open(path: impl Into<PathBuf>) -> Result<Self, StateError> {
        Self::on(&DirectoryStore::builder(path).open().await?).await
    }

    /// Opens the tasks in a directory. A missing directory is created by the first command that
    /// stores something, not by a read.
    ///
    /// # Errors
    ///
    /// Each error names the path and the way out.
    ///
    /// | kind | why |
    /// |---|---|
    /// | `Foreign` | the directory has files of something else |
    /// | `NewerVersion` | a newer version of this software created the directory |
    /// | `Unsupported` | the lock does not exclude here |
    /// | `Unreachable` | the lock was held too long, the file system failed, or no thread can be started |
    ///
    /// # Cancel safety
    ///
    /// A dropped future may leave an empty lock file, nothing else.
    pub async fn on(store: &DirectoryStore) -> Result<Self, StateError> {
        Self::start(store, None).await
    }

    /// As [`on`](Self::on) with another clock than the host's, for tests.
    ///
    /// # Errors
    ///
    /// The errors of [`on`](Self::on).
    #[doc(hidden)]
    pub async fn with_clock(
        store: &DirectoryStore,
        clock: impl Fn() -> Micros + Send + Sync + 'static,
    ) -> Result<Self, StateError> {
        Self::start(store, Some(Arc::new(clock))).await
    }

    async fn start(store: &DirectoryStore, clock: Option<TaskClock>) -> Result<Self, StateError> {
        let location = store.location.clone();
        let probed = location.clone();
        let probe = move || {
            probed.check()?;
            if probed.is_made()? { probed.lock().probe(probed.lock_wait()) } else { Ok(()) }
        };
        blocking(probe).await?;
        Ok(Self {
            writer: Writer::start(location.clone(), clock)?,
            watchers: Arc::new(Watchers::new(location.clone())),
            location,
        })
    }

    /// The path of the directory: absolute and without symbolic links.
    pub fn path(&self) -> &Path {
        self.location.path()
    }
}

/// # Cancel safety
///
/// A command that has begun is completed even if its future is dropped. A command that waits for
/// others is not begun then.
#[async_trait]
impl TaskStore for DirectoryTasks {
    async fn apply(&self, queue: &QueueName, command: Command) -> Result<Reply, StateError> {
        let (reply, mut answer) = oneshot::channel();
        let claimed = Arc::new(AtomicBool::new(false));
        self.writer.send(Request { queue: queue.clone(), command, claimed: claimed.clone(), reply })?;
        let reply_timeout = self.location.lock_timeout().max(MIN_REPLY_TIMEOUT);
        let answer = match timeout(reply_timeout, &mut answer).await {
            Ok(answer) => answer,
            // The claim keeps the writer thread from carrying out the command.
            Err(_) if !claimed.swap(true, Ordering::Relaxed) => return Err(self.location.held_too_long()),
            // The writer thread has begun; its wait for the lock has a time limit of its own.
            Err(_) => answer.await,
        };
        match answer {
            Ok(Ok(reply)) => reply,
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            Err(_) => Err(writer::gone(&self.location)),
        }
    }

    async fn queues(&self) -> Result<Vec<QueueName>, StateError> {
        let location = self.location.clone();
        blocking(move || {
            if location.is_made()? { watch::queues(&location) } else { location.check().map(|()| Vec::new()) }
        })
        .await
    }

    async fn changes(&self, queue: &QueueName) -> Result<Changes, StateError> {
        self.watchers.watch(queue).await
    }
}

impl fmt::Debug for DirectoryTasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DirectoryTasks").field("path", &self.path()).finish_non_exhaustive()
    }
}
