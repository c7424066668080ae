//! The suite that every store of tasks passes: by a clock of its own, and by that of the server.

use std::sync::Arc;

use interval_queue_conformance::ManualClock;
use interval_queue_postgres::{Durability, PostgresTasks};
use interval_queue_task_conformance::{Handles, recounted::removed_rows_are_counted};
use interval_queue_task_contract::TaskId;

use super::support::Kept;
use crate::common::*;

/// Two handles with connections of their own, as another process would have them.
async fn opened(durability: Durability, clock: Option<ManualClock>) -> Handles {
    let (server, schema) = (server(), someplace());
    let open = async || {
        let builder =
            PostgresStore::builder(server.url()).schema(&schema).durability(durability).connections(8);
        let store = builder.timeout(LONG).connect().await.unwrap();
        let tasks = match clock.clone() {
            Some(clock) => PostgresTasks::with_clock(&store, move || clock.now()).await,
            None => PostgresTasks::on(&store).await,
        };
        Arc::new(Kept::new(tasks.unwrap(), server.clone()))
    };
    Handles { one: open().await, other: open().await, clock: clock.clone() }
}

#[tokio::test]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn rows_that_are_removed_by_hand_are_counted() {
    let (server, schema) = (server(), someplace());
    let store = PostgresStore::builder(server.url()).schema(&schema).connect().await.unwrap();
    let tasks = Arc::new(PostgresTasks::on(&store).await.unwrap());
    let handles = Handles { one: tasks.clone(), other: tasks, clock: None };
    let remove = async |_: &QueueName, ids: &[TaskId]| {
        for id in ids {
            server.psql(&format!("DELETE FROM \"{schema}\".interval_queue_task WHERE id = '{id}'"));
        }
    };
    removed_rows_are_counted(handles, remove).await;
}

mod by_a_clock {
    async fn make() -> super::Handles {
        super::opened(super::Durability::Relaxed, Some(super::ManualClock::new())).await
    }
    interval_queue_task_conformance::task_conformance_tests!(
        #[ignore = "needs postgresql: scripts/test runs it"]
        make
    );
}

mod by_that_of_the_server {
    async fn make() -> super::Handles {
        super::opened(super::Durability::Full, None).await
    }
    interval_queue_task_conformance::task_conformance_tests!(
        #[ignore = "needs postgresql: scripts/test runs it"]
        make, no clock
    );
}
