//! The options of a database, and the step that opens it.

use std::{path::PathBuf, time::Duration};

use interval_queue_contract::{StateError, StateErrorKind};

use crate::SqliteState;

/// How an [`SqliteState`] is opened. Made by [`SqliteState::builder`].
#[derive(Clone, Debug)]
#[must_use = "nothing is opened before `open`"]
pub struct Builder {
    pub(crate) path: PathBuf,
    pub(crate) durability: Durability,
    pub(crate) lock_timeout: Duration,
}

/// What a crash of the host may cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Durability {
    /// A command is answered once it is on the disk. The default.
    #[default]
    Full,
    /// The operating system writes when it likes. A crash of the host may take the last commands back; it never damages.
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

    /// How long a command waits for other processes. Default: 5 s.
    pub fn lock_timeout(mut self, timeout: Duration) -> Self {
        self.lock_timeout = timeout;
        self
    }

    /// Opens the database, and creates it if it is not there.
    ///
    /// # Errors
    ///
    /// The path cannot be used.
    pub async fn open(self) -> Result<SqliteState, StateError> {
        Err(StateError::new(StateErrorKind::Unsupported, "not yet"))
    }
}
