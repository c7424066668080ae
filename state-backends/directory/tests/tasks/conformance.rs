//! The suite that every store of tasks passes: by a clock of its own, by that of the host, and as on a network mount.

use std::sync::Arc;

use async_trait::async_trait;
use interval_queue_conformance::ManualClock;
use interval_queue_contract::{Changes, QueueName, StateError};
use interval_queue_directory::{Builder, DirectoryStore, DirectoryTasks, Fsync};
use interval_queue_task_conformance::Handles;
use interval_queue_task_contract::{Command, Reply, TaskStore};
use tempfile::TempDir;

/// A store with its directory, which goes after it.
#[derive(Debug)]
struct Kept {
    tasks: DirectoryTasks,
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

/// Two handles, as another process would have them.
async fn opened(with: fn(Builder) -> Builder, clock: Option<ManualClock>) -> Handles {
    let directory = Arc::new(tempfile::tempdir().unwrap());
    let open = async || {
        let store = with(DirectoryStore::builder(directory.path().join("jobs"))).open().await.unwrap();
        let tasks = match clock.clone() {
            Some(clock) => DirectoryTasks::with_clock(&store, move || clock.now()).await,
            None => DirectoryTasks::on(&store).await,
        };
        Arc::new(Kept { tasks: tasks.unwrap(), _directory: directory.clone() })
    };
    Handles { one: open().await, other: open().await, clock: clock.clone() }
}

mod by_a_clock {
    async fn make() -> super::Handles {
        super::opened(|builder| builder, Some(super::ManualClock::new())).await
    }
    interval_queue_task_conformance::task_conformance_tests!(make);
}

mod by_that_of_the_host {
    async fn make() -> super::Handles {
        super::opened(|builder| builder.fsync(super::Fsync::Always), None).await
    }
    interval_queue_task_conformance::task_conformance_tests!(make, no clock);
}

/// Each command opens the index for itself, and the clock is that of the file server.
mod as_on_a_network_mount {
    async fn make() -> super::Handles {
        super::opened(super::Builder::as_remote, None).await
    }
    interval_queue_task_conformance::task_conformance_tests!(make, no clock);
}
