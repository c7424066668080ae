//! The rules, fuzzed on a server: crashes, stalls, lost messages, outages and steps of the clock.

use std::sync::Arc;

use interval_queue_conformance::ManualClock;
use interval_queue_redis::{RedisStore, RedisTasks};
use interval_queue_task_conformance::fuzzer::{Target, fuzz};
use interval_queue_test_support::RedisServer;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs redis-server: scripts/test runs it"]
async fn every_promise_holds_under_fuzzing() {
    let server = RedisServer::start();
    let mut starts = 0;
    for seed in 0..2u64 {
        let store = RedisStore::builder(server.url()).unwrap().prefix(seed.to_string());
        let store = store.connect().await.unwrap();
        let clock = ManualClock::default();
        let reading = clock.clone();
        let tasks = RedisTasks::with_clock(&store, move || reading.now());
        let target = Target { store: Arc::new(tasks), clock, copies: None };
        starts += fuzz(seed, &target).await.unwrap().starts;
    }
    assert!(starts > 100, "{starts}");
}
