//! The suite that every state backend passes: with each durability, and through one connection.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use async_trait::async_trait;
use interval_queue_conformance::Handles;
use interval_queue_contract::{Command, QueueName, Reply, SharedState, StateError};
use interval_queue_sqlite::{Durability, SqliteState};
use tempfile::TempDir;

/// A state whose directory goes when the last handle does.
#[derive(Debug)]
struct Temporary {
    state: SqliteState,
    _directory: Arc<TempDir>,
}

#[async_trait]
impl SharedState for Temporary {
    async fn apply(&self, queue: &QueueName, command: Command) -> Result<Reply, StateError> {
        self.state.apply(queue, command).await
    }

    async fn queues(&self) -> Result<Vec<QueueName>, StateError> {
        self.state.queues().await
    }
}

/// Opened twice: each handle has connections of its own, as another process would.
async fn opened(durability: Durability) -> Handles {
    let directory = Arc::new(tempfile::tempdir().unwrap());
    let open = async || {
        let builder = SqliteState::builder(directory.path().join("queues.db")).durability(durability);
        Arc::new(Temporary { state: builder.open().await.unwrap(), _directory: directory.clone() })
    };
    (open().await, open().await)
}

mod full {
    async fn make() -> super::Handles {
        super::opened(super::Durability::Full).await
    }
    interval_queue_conformance::suite!(make);
}

mod relaxed {
    async fn make() -> super::Handles {
        super::opened(super::Durability::Relaxed).await
    }
    interval_queue_conformance::suite!(make);
}

/// Handles that share one connection, which only the mutex keeps apart.
mod one_connection {
    async fn make() -> super::Handles {
        let (one, _) = super::opened(super::Durability::Relaxed).await;
        (one.clone(), one)
    }
    interval_queue_conformance::suite!(make);
}
