//! The public type.

use std::path::PathBuf;

use async_trait::async_trait;
use interval_queue_contract::{Command, QueueName, Reply, SharedState, StateError, StateErrorKind};

use crate::Builder;

/// Queues in one SQLite database that processes share. See the [crate's documentation](crate).
#[derive(Clone, Debug)]
pub struct SqliteState {}

impl SqliteState {
    /// Begins to open the database at `path`, which need not be there, in a directory that must be.
    pub fn builder(path: impl Into<PathBuf>) -> Builder {
        Builder::new(path.into())
    }

    /// Opens the database at `path` with the defaults of the [`Builder`].
    ///
    /// # Errors
    ///
    /// As [`Builder::open`].
    pub async fn open(path: impl Into<PathBuf>) -> Result<Self, StateError> {
        Self::builder(path).open().await
    }
}

#[async_trait]
impl SharedState for SqliteState {
    async fn apply(&self, _: &QueueName, _: Command) -> Result<Reply, StateError> {
        Err(StateError::new(StateErrorKind::Unsupported, "not yet"))
    }
}
