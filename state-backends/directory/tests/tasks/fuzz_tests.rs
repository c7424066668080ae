//! The rules, fuzzed on a database: crashes, stalls, lost messages, outages and steps of the clock.

use std::sync::Arc;

use interval_queue_conformance::ManualClock;
use interval_queue_directory::{DirectoryStore, DirectoryTasks};
use interval_queue_task_conformance::fuzzer::{Target, fuzz};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_promise_holds_under_fuzzing() {
    let mut starts = 0;
    for seed in 0..2 {
        let directory = tempfile::tempdir().unwrap();
        let builder = DirectoryStore::builder(directory.path().join("jobs"));
        let clock = ManualClock::default();
        let reading = clock.clone();
        let store =
            DirectoryTasks::with_clock(&builder.open().await.unwrap(), move || reading.now()).await.unwrap();
        let target = Target { store: Arc::new(store), clock, copies: None };
        starts += fuzz(seed, &target).await.unwrap().starts;
    }
    assert!(starts > 100, "{starts}");
}
