//! A store that owns its server or directory.

use async_trait::async_trait;
use interval_queue_contract::{Changes, Command, QueueName, Reply, SharedState, StateError};

/// A store and a value that must outlive it: its server, or the directory of its file.
#[derive(Debug)]
pub struct Keeping<S, T> {
    state: S,
    _kept: T,
}

impl<S, T> Keeping<S, T> {
    /// `kept` is dropped after the store.
    pub fn new(state: S, kept: T) -> Self {
        Self { state, _kept: kept }
    }
}

#[async_trait]
impl<S, T> SharedState for Keeping<S, T>
where
    S: SharedState,
    T: std::fmt::Debug + Send + Sync + 'static,
{
    async fn apply(&self, queue: &QueueName, command: Command) -> Result<Reply, StateError> {
        self.state.apply(queue, command).await
    }

    async fn queues(&self) -> Result<Vec<QueueName>, StateError> {
        self.state.queues().await
    }

    async fn changes(&self, queue: &QueueName) -> Result<Changes, StateError> {
        self.state.changes(queue).await
    }
}
