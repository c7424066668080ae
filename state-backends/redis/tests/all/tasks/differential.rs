//! The Lua rules of tasks against the Rust rules: random commands do the same on a server as in the memory.

use std::sync::Arc;

use interval_queue_conformance::ManualClock;
use interval_queue_redis::{RedisStore, RedisTasks};
use interval_queue_task_conformance::{differential::compare, fuzzer::Target};
use interval_queue_test_support::RedisServer;

use super::support::is_indexed;

const SEEDS: u64 = 12;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs redis-server: scripts/test runs it"]
async fn random_commands_do_the_same_as_in_the_memory() {
    let number = |name: &str, usual| std::env::var(name).map_or(usual, |text| text.parse().unwrap());
    let first = number("INTERVAL_QUEUE_SEED", 0);
    let seeds = number("INTERVAL_QUEUE_SEEDS", SEEDS);
    let server = RedisServer::start();
    let mut leased = 0;
    for seed in first..first + seeds {
        let store = RedisStore::builder(server.url()).unwrap().prefix(seed.to_string());
        let store = store.connect().await.unwrap();
        let clock = ManualClock::default();
        let reading = clock.clone();
        let tasks = RedisTasks::with_clock(&store, move || reading.now());
        let target = Target { store: Arc::new(tasks), clock, copies: None };
        leased += compare(seed, 600, &target).await.unwrap_or_else(|different| panic!("{different}"));
        is_indexed(&server, &format!("{{{seed}:mail}}:t"));
    }
    println!("{leased} tasks were leased");
    assert!(leased as u64 > 60 * seeds, "{leased} tasks were leased");
}
