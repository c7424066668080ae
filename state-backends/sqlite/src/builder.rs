//! The options of a database, and the step that opens it.

use std::{path::PathBuf, time::Duration};

use interval_queue_contract::StateError;

use crate::SqliteState;

/// How an [`SqliteState`] is opened. Made by [`SqliteState::builder`].
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

    /// Checks that the database can be used. If it is not there, or has no tables of queues, the first
    /// command that stores makes them, so that who only looks leaves nothing behind.
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
    /// | `Damaged` | the database is corrupt |
    /// | `Foreign` | the file is no SQLite database, or a table `interval_queue` in it is somebody else's |
    /// | `NewerVersion` | a newer version of this software made the tables |
    /// | `Unsupported` | a network mount, or a file mounted by itself |
    /// | `Unreachable` | somebody else held the database too long, or the file system failed |
    ///
    /// # Cancel safety
    ///
    /// It changes nothing, but what SQLite recovers after a crash.
    pub async fn open(self) -> Result<SqliteState, StateError> {
        SqliteState::open_with(self).await
    }
}
