//! The tables of a database give the rules what those of the memory give.

use std::sync::Arc;

use interval_queue_conformance::ManualClock;
use interval_queue_sqlite::{Durability, SqliteStore, SqliteTasks};
use interval_queue_task_conformance::{differential::compare, fuzzer::Target};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_commands_do_the_same_as_in_the_memory() {
    let mut leased = 0;
    for seed in 0..16 {
        let directory = tempfile::tempdir().unwrap();
        let builder = SqliteStore::builder(directory.path().join("tasks.db")).durability(Durability::Relaxed);
        let clock = ManualClock::default();
        let reading = clock.clone();
        let store =
            SqliteTasks::with_clock(&builder.open().await.unwrap(), move || reading.now()).await.unwrap();
        let stage = Target { store: Arc::new(store), clock, copies: None };
        leased += compare(seed, 600, &stage).await.unwrap();
    }
    assert!(leased > 1_000, "{leased} tasks were leased");
}
