//! Connections with a short time-out, and what tests say to any state.

use std::time::Duration;

use futures::StreamExt;
use interval_queue_contract::Changes;
use interval_queue_redis::{RedisState, RedisStore};
use interval_queue_test_support::RedisServer;
pub(crate) use interval_queue_test_support::{Shard, commands::*};

/// Short, so that a test of time-outs is.
pub(crate) const TIMEOUT: Duration = Duration::from_millis(500);

pub(crate) async fn connect(url: &str) -> RedisState {
    connect_with_timeout(url, TIMEOUT).await
}

pub(crate) async fn connect_with_timeout(url: &str, timeout: Duration) -> RedisState {
    let builder = RedisStore::builder(url).unwrap().timeout(timeout);
    RedisState::on(&builder.connect().await.unwrap())
}

/// A server, and a state on it that has the queue `mail`.
pub(crate) async fn opened() -> (RedisServer, RedisState) {
    let server = RedisServer::start();
    let state = connect(server.url()).await;
    open(&state).await.unwrap();
    (server, state)
}

pub(crate) async fn expect_notification(changes: &mut Changes) {
    let notification = tokio::time::timeout(Duration::from_secs(60), changes.next()).await;
    notification.expect("no notification came").expect("the stream ended");
}
