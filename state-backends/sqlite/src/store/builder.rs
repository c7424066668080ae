//! The options of a database.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use interval_queue_contract::{InvalidInput, StateError};
use interval_queue_store::Url;

use super::SqliteStore;

/// Options of an [`SqliteStore`], created by [`SqliteStore::builder`] or from a URL.
#[derive(Clone, Debug)]
#[must_use = "nothing is opened before `open`"]
pub struct Builder {
    pub(crate) path: PathBuf,
    pub(crate) durability: Durability,
    pub(crate) lock_timeout: Duration,
}

/// Durability: the commands that a crash of the host may lose. A killed process loses none.
///
/// Processes that share a database may choose differently; each setting covers the commands of its
/// process. The [crate's documentation](crate#durability) compares both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Durability {
    /// A command returns once it is on the disk: `PRAGMA synchronous = FULL`, one flush per
    /// command. The default.
    #[default]
    Full,
    /// The operating system writes at a time of its choice: `PRAGMA synchronous = NORMAL`. A crash
    /// of the host may lose the last commands; it never damages the database.
    Relaxed,
}

impl Builder {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, durability: Durability::default(), lock_timeout: Duration::from_secs(5) }
    }

    /// Reads the URL `sqlite:PATH`, with the parameters `durability` (`full` or `relaxed`) and
    /// `lock_timeout`.
    ///
    /// # Errors
    ///
    /// The path is missing, or a parameter is unknown or invalid.
    pub fn from_url(mut url: Url) -> Result<Self, InvalidInput> {
        let mut builder =
            Self::new(url.path("sqlite:PATH, as in sqlite:pace.db, or memory: for one process")?.into());
        if builder.path == Path::new(":memory:") {
            let text = "sqlite::memory: is no place that processes share: use sqlite:PATH, or memory: for one process";
            return Err(InvalidInput::new(text));
        }
        let durabilities = [("full", Durability::Full), ("relaxed", Durability::Relaxed)];
        builder.durability = url.choice("durability", &durabilities)?.unwrap_or(builder.durability);
        builder.lock_timeout = url.duration("lock_timeout")?.unwrap_or(builder.lock_timeout);
        url.finish()?;
        Ok(builder)
    }

    /// Durability: the commands that a crash of the host may lose. Default: [`Durability::Full`].
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Maximum wait of a command for other users of the database, before it fails as
    /// [`Unreachable`](interval_queue_contract::StateErrorKind::Unreachable). A healthy user holds
    /// the database for a fraction of a millisecond plus one flush. Default: 5 s.
    pub fn lock_timeout(mut self, timeout: Duration) -> Self {
        self.lock_timeout = timeout;
        self
    }

    /// Locates the database, and checks that this user may write to it or create it. Its contents
    /// are not read.
    ///
    /// A relative path is resolved against the current directory now.
    ///
    /// # Errors
    ///
    /// Each error names the path and a remedy.
    ///
    /// | kind | why |
    /// |---|---|
    /// | `NotFound` | the directory is missing |
    /// | `Invalid` | the path is empty, `:memory:`, a directory or anything else than a file |
    /// | `Denied` | a read-only file system, or no right to write to the file and to its directory |
    /// | `Unreachable` | the file system failed |
    ///
    /// # Cancel safety
    ///
    /// It changes nothing.
    pub async fn open(self) -> Result<SqliteStore, StateError> {
        SqliteStore::open(self).await
    }
}
