//! The suite that every state backend passes, on a server of its own for each check.

use std::sync::Arc;

use interval_queue_conformance::{Handles, Keeping};
use interval_queue_redis::RedisState;
use interval_queue_test_support::RedisServer;

async fn make() -> Handles {
    let server = Arc::new(RedisServer::start());
    let one = RedisState::connect(server.url()).await.unwrap();
    let other = RedisState::connect(server.url()).await.unwrap();
    (Arc::new(Keeping::new(one, server.clone())), Arc::new(Keeping::new(other, server)))
}

interval_queue_conformance::suite!(
    #[ignore = "needs redis-server: scripts/test runs it"]
    make
);
