//! The suite that every state backend passes: with the clock of the host, and with that of the file server.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use async_trait::async_trait;
use interval_queue_conformance::Handles;
use interval_queue_contract::{Changes, Command, QueueName, Reply, SharedState, StateError};
use interval_queue_json_file::{Clock, JsonFileState};
use tempfile::TempDir;

/// A state whose directory goes when the last handle does.
#[derive(Debug)]
struct Temporary {
    state: JsonFileState,
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

    async fn changes(&self, queue: &QueueName) -> Result<Changes, StateError> {
        self.state.changes(queue).await
    }
}

/// Opened twice: each handle has a descriptor of its own, as another process would.
async fn opened(clock: Clock) -> Handles {
    let directory = Arc::new(tempfile::tempdir().unwrap());
    let open = async || {
        let builder = JsonFileState::builder(directory.path().join("state.json")).clock(clock);
        Arc::new(Temporary { state: builder.open().await.unwrap(), _directory: directory.clone() })
    };
    (open().await, open().await)
}

mod host {
    async fn make() -> super::Handles {
        super::opened(super::Clock::Host).await
    }
    interval_queue_conformance::suite!(make);
}

mod file_server {
    async fn make() -> super::Handles {
        super::opened(super::Clock::FileServer).await
    }
    interval_queue_conformance::suite!(make);
}

/// Handles that share one descriptor, which only the mutex keeps apart.
mod one_descriptor {
    async fn make() -> super::Handles {
        let (one, _) = super::opened(super::Clock::Host).await;
        (one.clone(), one)
    }
    interval_queue_conformance::suite!(make);
}
