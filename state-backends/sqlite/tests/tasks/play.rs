//! The rules, fuzzed on a database: crashes, stalls, lost messages, outages and steps of the clock.

use std::{path::PathBuf, sync::Arc};

use async_trait::async_trait;
use interval_queue_conformance::ManualClock;
use interval_queue_contract::{QueueName, StateError};
use interval_queue_sqlite::{Durability, SqliteStore, SqliteTasks};
use interval_queue_task_conformance::fuzzer::{Target, Within, fuzz, fuzz_within};
use interval_queue_task_contract::{Completed, Completion, WorkerId};

/// Transactions of an application, on a connection of its own.
struct Transactions {
    path: PathBuf,
    tasks: SqliteTasks,
}

#[async_trait]
impl Within for Transactions {
    async fn end(
        &self,
        queue: &QueueName,
        worker: WorkerId,
        completion: &Completion,
    ) -> Result<Completed, StateError> {
        let mut database = rusqlite::Connection::open(&self.path).unwrap();
        let transaction = database.transaction().unwrap();
        let completed = self.tasks.complete_within(&transaction, queue, worker, completion)?;
        transaction.commit().unwrap();
        Ok(completed)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_promise_holds_under_fuzzing() {
    let mut starts = 0;
    for (seed, is_within) in [(0, false), (1, false), (2, true)] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("tasks.db");
        let builder = SqliteStore::builder(&path).durability(Durability::Relaxed);
        let clock = ManualClock::default();
        let reading = clock.clone();
        let store =
            SqliteTasks::with_clock(&builder.open().await.unwrap(), move || reading.now()).await.unwrap();
        let target = Target { store: Arc::new(store.clone()), clock, copies: None };
        let report = if is_within {
            fuzz_within(seed, &target, Arc::new(Transactions { path, tasks: store })).await
        } else {
            fuzz(seed, &target).await
        };
        starts += report.unwrap().starts;
    }
    assert!(starts > 100, "{starts}");
}
