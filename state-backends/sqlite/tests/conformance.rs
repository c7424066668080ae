//! The suite that every state backend passes: with each durability, and through one connection.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use interval_queue_conformance::{Handles, Keeping};
use interval_queue_sqlite::{Durability, SqliteState, SqliteStore};

async fn opened(durability: Durability, is_shared: bool) -> Handles {
    let directory = Arc::new(tempfile::tempdir().unwrap());
    let open = async || {
        let store = SqliteStore::builder(directory.path().join("queues.db")).durability(durability);
        let state = SqliteState::on(&store.open().await.unwrap()).await.unwrap();
        Arc::new(Keeping::new(state, directory.clone()))
    };
    let one = open().await;
    if is_shared { (one.clone(), one) } else { (one, open().await) }
}

macro_rules! suite_on {
    ($name:ident, $durability:expr, $is_shared:expr) => {
        mod $name {
            async fn make() -> super::Handles {
                super::opened($durability, $is_shared).await
            }
            interval_queue_conformance::suite!(make);
        }
    };
}

// Opened twice: each handle has connections of its own, as another process would.
suite_on!(full, super::Durability::Full, false);
suite_on!(relaxed, super::Durability::Relaxed, false);
// Handles that share one connection, which only the mutex keeps apart.
suite_on!(one_connection, super::Durability::Relaxed, true);
