//! The memory backend passes the suite.

use std::sync::Arc;

use interval_queue_conformance::Handles;
use interval_queue_memory::MemoryState;

async fn make() -> Handles {
    let state = MemoryState::new();
    (Arc::new(state.clone()), Arc::new(state))
}

interval_queue_conformance::suite!(make);
