//! A directory gives the rules what the memory gives.

use std::sync::Arc;

use interval_queue_conformance::ManualClock;
use interval_queue_directory::{DirectoryStore, DirectoryTasks};
use interval_queue_task_conformance::{differential::compare, fuzzer::Target};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_commands_do_the_same_as_in_the_memory() {
    let mut leased = 0;
    for seed in 0..6 {
        // One as on a network mount, which opens the index for each command.
        let is_remote = seed == 5;
        let directory = tempfile::tempdir().unwrap();
        let clock = ManualClock::default();
        let reading = clock.clone();
        let builder = DirectoryStore::builder(directory.path().join("jobs"));
        let builder = if is_remote { builder.as_remote() } else { builder };
        let opened = builder.open().await.unwrap();
        let store = DirectoryTasks::with_clock(&opened, move || reading.now());
        let target = Target { store: Arc::new(store.await.unwrap()), clock, copies: None };
        leased += compare(seed, if is_remote { 150 } else { 400 }, &target).await.unwrap();
    }
    assert!(leased > 200, "{leased} tasks were leased");
}
