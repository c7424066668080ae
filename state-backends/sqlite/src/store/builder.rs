//! The options of a database, and the step that opens it.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use interval_queue_contract::{InvalidInput, StateError};
use interval_queue_store::Url;

use super::SqliteStore;

/// How an [`SqliteStore`] is opened. Made by [`SqliteStore::builder`] or from a URL.
#[derive(Clone, Debug)]
#[must_use = "nothing is opened before `open`"]
pub struct Builder {
    pub(crate) path: PathBuf,
    pub(crate) durability: Durability,
    pub(crate) lock_timeout: Duration,
}

/// What a crash of the host may cost. A killed process loses nothing either way.
///
/// Processes that share a database may choose differently; each answers for its own commands. The
/// [crate's documentation](crate#what-survives-what) compares the two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Durability {
    /// A command is answered once it is on the disk: `PRAGMA synchronous = FULL`, one flush a command. The
    /// default.
    #[default]
    Full,
    /// The operating system writes when it likes: `PRAGMA synchronous = NORMAL`. A crash of the host may take
    /// the last commands back; it never damages the database.
    Relaxed,
}

impl Builder {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, durability: Durability::default(), lock_timeout: Duration::from_secs(5) }
    }

    /// What `sqlite:PATH` says, with the parameters `durability` (`full` or `relaxed`) and `lock_timeout`.
    ///
    /// # Errors
    ///
    /// There is no path, or a parameter is unknown or cannot be used.
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

    /// What a crash of the host may cost. Default: [`Durability::Full`].
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// How long a command waits for the other users of the database, before it ends as
    /// [`Unreachable`](interval_queue_contract::StateErrorKind::Unreachable). A healthy one holds it for a
    /// fraction of a millisecond and the time of one flush. Default: 5 s.
    pub fn lock_timeout(mut self, timeout: Duration) -> Self {
        self.lock_timeout = timeout;
        self
    }

    /// Finds the database, and checks that this user may write to it or make it. What is in it is looked at
    /// by those who keep something there.
    ///
    /// A relative path is taken from the current directory of this moment.
    ///
    /// # Errors
    ///
    /// Each names the path and the way out.
    ///
    /// | kind | why |
    /// |---|---|
    /// | `NotFound` | the directory is missing |
    /// | `Invalid` | the path is empty, `:memory:`, a directory or anything else than a file |
    /// | `Denied` | a read-only place, or no right to write to the file and to its directory |
    /// | `Unreachable` | the file system failed |
    ///
    /// # Cancel safety
    ///
    /// It changes nothing.
    pub async fn open(self) -> Result<SqliteStore, StateError> {
        SqliteStore::open(self).await
    }
}
