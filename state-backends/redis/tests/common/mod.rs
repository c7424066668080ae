//! Connections with a short time-out, and what tests say to any state.
#![allow(
    dead_code,
    unreachable_pub,
    unused_imports,
    clippy::unwrap_used,
    reason = "no test needs all of it, and each fails by panicking"
)]

use std::time::Duration;

use interval_queue_redis::RedisState;
pub use interval_queue_test_support::{Shard, commands::*};

/// Short, so that a test of time-outs is.
pub const TIMEOUT: Duration = Duration::from_millis(500);

pub async fn connect(url: &str) -> RedisState {
    RedisState::builder(url).timeout(TIMEOUT).connect().await.unwrap()
}
