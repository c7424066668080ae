//! The state backend.

use async_trait::async_trait;
use interval_queue_contract::{Command, QueueName, Reply, SharedState, StateError, StateErrorKind};

use crate::Builder;

/// State in PostgreSQL.
#[derive(Debug)]
pub struct PostgresState {}

impl PostgresState {
    /// Connects with default settings.
    ///
    /// # Errors
    ///
    /// Those of [`Builder::connect`].
    pub async fn connect(url: impl Into<String>) -> Result<Self, StateError> {
        Self::builder(url).connect().await
    }

    /// Settings to change before it connects.
    pub fn builder(url: impl Into<String>) -> Builder {
        Builder::new(url.into())
    }
}

#[async_trait]
impl SharedState for PostgresState {
    async fn apply(&self, _: &QueueName, _: Command) -> Result<Reply, StateError> {
        Err(StateError::new(StateErrorKind::Unsupported, "not yet"))
    }
}
