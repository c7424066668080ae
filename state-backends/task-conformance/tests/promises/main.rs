//! The promises of stored tasks, as far as the rules alone can show it: a file for each promise, on the memory store.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod t10_truth;
mod t11_quiet;
mod t1_kept;
mod t2_one_run;
mod t3_to_the_end;
mod t4_order;
mod t5_pace;
mod t6_limits;
mod t7_edges;
mod t8_schedules;
mod t9_control;

use std::sync::Arc;

use interval_queue_conformance::ManualClock;
use interval_queue_memory::MemoryTasks;
use interval_queue_task_conformance::{
    Handles,
    client::{Client, usual},
};

/// A queue in memory, with a clock that stands still.
async fn queue() -> Client {
    let clock = ManualClock::new();
    let reading = clock.clone();
    let store = MemoryTasks::with_clock(move || reading.now());
    usual(Handles { one: Arc::new(store.clone()), other: Arc::new(store), clock: Some(clock) }).await.0
}
