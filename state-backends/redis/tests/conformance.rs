//! The suite that every state backend passes, on a server of its own for each check.
#![allow(clippy::unwrap_used, reason = "a check without a server fails")]

use std::sync::Arc;

use async_trait::async_trait;
use interval_queue_conformance::Handles;
use interval_queue_contract::{Changes, Command, QueueName, Reply, SharedState, StateError};
use interval_queue_redis::RedisState;
use interval_queue_test_support::RedisServer;

/// A state that keeps its server.
#[derive(Debug)]
struct Served(RedisState, #[allow(dead_code, reason = "kept until it is dropped")] Arc<RedisServer>);

#[async_trait]
impl SharedState for Served {
    async fn apply(&self, queue: &QueueName, command: Command) -> Result<Reply, StateError> {
        self.0.apply(queue, command).await
    }

    async fn queues(&self) -> Result<Vec<QueueName>, StateError> {
        self.0.queues().await
    }

    async fn changes(&self, queue: &QueueName) -> Result<Changes, StateError> {
        self.0.changes(queue).await
    }
}

async fn make() -> Handles {
    let server = Arc::new(RedisServer::start());
    let one = RedisState::connect(server.url()).await.unwrap();
    let other = RedisState::connect(server.url()).await.unwrap();
    (Arc::new(Served(one, server.clone())), Arc::new(Served(other, server)))
}

interval_queue_conformance::suite!(
    #[ignore = "needs redis-server: scripts/test runs it"]
    make
);
