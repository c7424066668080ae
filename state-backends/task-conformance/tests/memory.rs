//! The memory store passes the suite.

use std::sync::Arc;

use interval_queue_conformance::ManualClock;
use interval_queue_memory::MemoryTasks;
use interval_queue_task_conformance::Handles;

async fn make() -> Handles {
    let clock = ManualClock::new();
    let reading = clock.clone();
    let store = MemoryTasks::with_clock(move || reading.now());
    Handles { one: Arc::new(store.clone()), other: Arc::new(store), clock: Some(clock) }
}

interval_queue_task_conformance::task_conformance_tests!(make);

/// By the clock of the host, as it is used.
mod on_its_own_clock {
    use super::*;

    async fn make() -> Handles {
        let store = MemoryTasks::new();
        Handles { one: Arc::new(store.clone()), other: Arc::new(store), clock: None }
    }

    interval_queue_task_conformance::task_conformance_tests!(make, no clock);
}
