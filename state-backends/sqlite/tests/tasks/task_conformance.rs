//! The suite that every store of tasks passes: by a clock of its own, and by that of the host.

use std::sync::Arc;

use async_trait::async_trait;
use interval_queue_conformance::ManualClock;
use interval_queue_contract::{Changes, QueueName, StateError};
use interval_queue_sqlite::{Durability, SqliteStore, SqliteTasks};
use interval_queue_task_conformance::{Handles, recounted::removed_rows_are_counted};
use interval_queue_task_contract::{Command, Reply, TaskId, TaskStore};
use tempfile::TempDir;

/// A store with its directory, which goes after it.
#[derive(Debug)]
struct Kept {
    tasks: SqliteTasks,
    _directory: Arc<TempDir>,
}

#[async_trait]
impl TaskStore for Kept {
    async fn apply(&self, queue: &QueueName, command: Command) -> Result<Reply, StateError> {
        self.tasks.apply(queue, command).await
    }

    async fn queues(&self) -> Result<Vec<QueueName>, StateError> {
        self.tasks.queues().await
    }

    async fn changes(&self, queue: &QueueName) -> Result<Changes, StateError> {
        self.tasks.changes(queue).await
    }
}

/// Two handles with connections of their own, as another process would have them.
async fn opened(durability: Durability, clock: Option<ManualClock>) -> Handles {
    let directory = Arc::new(tempfile::tempdir().unwrap());
    let open = async || {
        let builder = SqliteStore::builder(directory.path().join("tasks.db")).durability(durability);
        let store = builder.open().await.unwrap();
        let tasks = match clock.clone() {
            Some(clock) => SqliteTasks::with_clock(&store, move || clock.now()).await,
            None => SqliteTasks::on(&store).await,
        };
        Arc::new(Kept { tasks: tasks.unwrap(), _directory: directory.clone() })
    };
    Handles { one: open().await, other: open().await, clock: clock.clone() }
}

#[tokio::test]
async fn rows_that_are_removed_by_hand_are_counted() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tasks.db");
    let store = SqliteStore::builder(&path).open().await.unwrap();
    let tasks = Arc::new(SqliteTasks::on(&store).await.unwrap());
    let handles = Handles { one: tasks.clone(), other: tasks, clock: None };
    let remove = async |_: &QueueName, ids: &[TaskId]| {
        let database = rusqlite::Connection::open(&path).unwrap();
        for id in ids {
            let removed = database.execute("DELETE FROM interval_queue_task WHERE id = ?1", [id.to_string()]);
            assert_eq!(removed, Ok(1));
        }
    };
    removed_rows_are_counted(handles, remove).await;
}

mod by_a_clock {
    async fn make() -> super::Handles {
        super::opened(super::Durability::Relaxed, Some(super::ManualClock::new())).await
    }
    interval_queue_task_conformance::task_conformance_tests!(make);
}

mod by_that_of_the_host {
    async fn make() -> super::Handles {
        super::opened(super::Durability::Full, None).await
    }
    interval_queue_task_conformance::task_conformance_tests!(make, no clock);
}
