//! The suite that every state backend passes: with the clock of the host, and with that of the file server.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use interval_queue_conformance::{Handles, Keeping};
use interval_queue_json_file::{Clock, JsonFileState, JsonFileStore};

async fn opened(clock: Clock, is_shared: bool) -> Handles {
    let directory = Arc::new(tempfile::tempdir().unwrap());
    let open = async || {
        let store = JsonFileStore::builder(directory.path().join("state.json")).clock(clock);
        let state = JsonFileState::on(&store.open().await.unwrap()).await.unwrap();
        Arc::new(Keeping::new(state, directory.clone()))
    };
    let one = open().await;
    if is_shared { (one.clone(), one) } else { (one, open().await) }
}

macro_rules! suite_on {
    ($name:ident, $clock:expr, $is_shared:expr) => {
        mod $name {
            async fn make() -> super::Handles {
                super::opened($clock, $is_shared).await
            }
            interval_queue_conformance::suite!(make);
        }
    };
}

// Opened twice: each handle has a descriptor of its own, as another process would.
suite_on!(host, super::Clock::Host, false);
suite_on!(file_server, super::Clock::FileServer, false);
// Handles that share one descriptor, which only the mutex keeps apart.
suite_on!(one_descriptor, super::Clock::Host, true);
