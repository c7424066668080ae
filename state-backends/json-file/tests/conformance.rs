//! The suite that every state backend passes: with the clock of the host, and with that of the file server.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use interval_queue_conformance::{Handles, Keeping};
use interval_queue_json_file::{Clock, JsonFileState, JsonFileStore};

/// Opened twice: each handle has a descriptor of its own, as another process would.
async fn opened(clock: Clock) -> Handles {
    let directory = Arc::new(tempfile::tempdir().unwrap());
    let open = async || {
        let store = JsonFileStore::builder(directory.path().join("state.json")).clock(clock);
        let state = JsonFileState::on(&store.open().await.unwrap()).await.unwrap();
        Arc::new(Keeping::new(state, directory.clone()))
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
