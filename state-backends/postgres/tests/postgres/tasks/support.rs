//! What the tests say to stored tasks.

use std::sync::Arc;

use async_trait::async_trait;
use interval_queue_conformance::ManualClock;
use interval_queue_postgres::{Durability, PostgresTasks};
use interval_queue_task_conformance::fuzzer::Target;
pub(crate) use interval_queue_task_conformance::hand::{Hand, LEASE, add, done, ended, id, task, worker};
use interval_queue_task_contract::{Command, Reply, TaskStore};

use crate::common::*;

/// Tasks with the server that keeps them, which goes after them.
#[derive(Debug)]
pub(crate) struct Kept {
    tasks: PostgresTasks,
    _server: Shared,
}

impl Kept {
    pub(crate) fn new(tasks: PostgresTasks, server: Shared) -> Self {
        Self { tasks, _server: server }
    }
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

/// A store in a schema of its own, by a clock of its own.
pub(crate) async fn stage() -> Target {
    staged().await.0
}

/// The same, and the name of the schema.
async fn staged() -> (Target, String) {
    let (server, schema) = (server(), someplace());
    let builder = PostgresStore::builder(server.url()).schema(&schema).durability(Durability::Relaxed);
    let store = builder.timeout(LONG).connect().await.unwrap();
    let clock = ManualClock::default();
    let reading = clock.clone();
    let tasks = PostgresTasks::with_clock(&store, move || reading.now()).await.unwrap();
    (Target { store: Arc::new(Kept::new(tasks, server)), clock, copies: None }, schema)
}

/// SQL that lets the functions of a schema take the time of a test, not of the server.
pub(crate) fn functions_by_a_test_clock(schema: &str) -> String {
    format!(
        "CREATE SEQUENCE \"{schema}\".clock; \
         CREATE OR REPLACE FUNCTION \"{schema}\".interval_queue_task_now() RETURNS bigint LANGUAGE sql \
         AS 'SELECT last_value FROM \"{schema}\".clock'"
    )
}

pub(crate) fn set_test_clock(schema: &str, now: u64) -> String {
    format!("SELECT setval('\"{schema}\".clock', {})", now.max(1))
}

/// A target whose server reports many dead rows, so that there are low-water marks.
pub(crate) async fn stage_with_low_marks() -> Target {
    let (stage, schema) = staged().await;
    stage.store.apply(&QueueName::new("other").unwrap(), add([])).await.unwrap();
    let dead = format!(
        "CREATE OR REPLACE FUNCTION \"{schema}\".interval_queue_task_dead() RETURNS bigint LANGUAGE sql STABLE \
         AS 'SELECT 1000000::bigint'"
    );
    server().psql(&dead);
    stage
}

/// The address of a database that nobody else uses.
pub(crate) fn fresh_database(server: &PostgresServer) -> String {
    let name = someplace().replace(' ', "_");
    server.psql(&format!("CREATE DATABASE {name}"));
    database(server, &name)
}
