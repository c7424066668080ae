//! The suite that every state backend passes: with each durability, and through one connection.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use interval_queue_conformance::{Handles, Keeping};
use interval_queue_sqlite::{Durability, SqliteState, SqliteStore};

/// Opened twice: each handle has connections of its own, as another process would.
async fn opened(durability: Durability) -> Handles {
    let directory = Arc::new(tempfile::tempdir().unwrap());
    let open = async || {
        let store = SqliteStore::builder(directory.path().join("queues.db")).durability(durability);
        let state = SqliteState::on(&store.open().await.unwrap()).await.unwrap();
        Arc::new(Keeping::new(state, directory.clone()))
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
