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
    /// A command is answered once it is on the disk: `PRAGMA synchronous = FULL`, one flush a command. The default.
    #[default]
    Full,
    /// The operating system writes when it likes: `PRAGMA synchronous = NORMAL`. A crash of the host may take the last
    /// commands back; it never damages the database.
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
    /// [`Unreachable`](interval_queue_contract::StateErrorKind::Unreachable). A healthy one holds it for a fraction of a
    /// millisecond and the time of one flush. Default: 5 s.
    pub fn lock_timeout(mut self, timeout: Duration) -> Self {
        self.lock_timeout = timeout;
        self
    }

    /// Opens the database, makes it if it is not there, and adds the tables if they are not.
    ///
    /// A relative path is taken from the current directory of this moment. What was there stays as it is if an error is
    /// returned, and nothing is left of a database that could not be made.
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
    /// | `Full` | no room to make the database or its log |
    /// | `Unsupported` | a network mount, a file mounted by itself, or no write-ahead log |
    /// | `Unreachable` | somebody else held the database too long, or the file system failed |
    /// | `TimedOut` | the file system failed while the tables were made |
    ///
    /// # Cancel safety
    ///
    /// Once begun it is carried through: a dropped future may leave a database with empty tables, never a part of them.
    pub async fn open(self) -> Result<SqliteState, StateError> {
        SqliteState::open_with(self).await
    }
}
