//! Several limits at once on real processes that share two queues.
#![cfg(all(unix, any(feature = "json-file", feature = "sqlite", feature = "redis", feature = "postgres")))]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    io::BufRead,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures::future::join_all;
use interval_queue::{
    IntervalQueue, Limits, connect,
    contract::{Command, QueueName},
};
#[cfg(feature = "postgres")]
use interval_queue_test_support::PostgresServer;
use interval_queue_test_support::Process;
#[cfg(feature = "redis")]
use interval_queue_test_support::RedisServer;
use rustix::time::{ClockId, clock_gettime};

const JOBS: usize = 40;

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn say(what: &str) {
    let now = clock_gettime(ClockId::Monotonic);
    println!("\n{what} {}", now.tv_sec * 1_000_000 + now.tv_nsec / 1_000);
}

/// Runs the jobs that it is told to, each on the limits in an order of its own, and says when it begins and
/// when they start.
fn obey() {
    let url = std::io::stdin().lock().lines().next().unwrap().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let open = async |name: &str, interval| {
            let queue = IntervalQueue::builder(name).interval(interval);
            queue.connect(&url.replace("{name}", name)).await.unwrap()
        };
        let (slow, fast) = (open("slow", ms(40)).await, open("fast", ms(10)).await);
        say("begin");
        let jobs = (0..JOBS).map(|job| {
            let (slow, fast) = (slow.clone(), fast.clone());
            let limits = if job % 2 == 0 { Limits::new([slow, fast]) } else { Limits::new([fast, slow]) };
            async move {
                limits.unwrap().run(async { say("start") }).await.unwrap();
            }
        });
        join_all(jobs).await;
        slow.wait_idle().await;
        fast.wait_idle().await;
    });
}

/// Two processes run all jobs; `{name}` in the URL is that of the queue.
fn processes_block_nobody(test: &str, url: &str) {
    let said: Arc<Mutex<Vec<(String, u64)>>> = Arc::default();
    let mut processes: Vec<_> = (0..2)
        .map(|_| {
            let said = said.clone();
            let mut process = Process::start(test, move |line| {
                if let Some((what @ ("begin" | "start"), at)) = line.split_once(' ') {
                    said.lock().unwrap().push((what.to_owned(), at.parse().unwrap()));
                }
            });
            process.tell(url);
            process
        })
        .collect();
    processes.iter_mut().for_each(Process::wait);
    let all = |wanted: &str| {
        let said = said.lock().unwrap();
        let mut all: Vec<_> = said.iter().filter(|(what, _)| what == wanted).map(|(_, at)| *at).collect();
        all.sort_unstable();
        all
    };
    let starts = all("start");
    assert_eq!(starts.len(), 2 * JOBS);
    // The first slot comes after that, and no start before its slot.
    let took = starts[starts.len() - 1] - all("begin")[0];
    let near = starts.windows(2).filter(|pair| pair[1] - pair[0] < 30_000).count();
    println!(
        "{} jobs in {} ms, {near} nearer than three quarters of the interval",
        starts.len(),
        took / 1_000
    );
    assert!(took >= 40_000 * (2 * JOBS as u64 - 1), "{took} µs");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for name in ["slow", "fast"] {
        let record = runtime.block_on(async {
            let state = connect(&url.replace("{name}", name)).await.unwrap();
            let reply = state.apply(&QueueName::new(name).unwrap(), Command::Read).await.unwrap();
            reply.read().unwrap().unwrap().record
        });
        assert!(record.shards.is_empty(), "{record:?}");
    }
}

#[cfg(feature = "json-file")]
#[test]
fn processes_that_need_slots_of_two_queues_block_nobody() {
    if Process::is_copy() {
        return obey();
    }
    let directory = tempfile::tempdir().unwrap();
    let url = format!("file:{}/{{name}}.json", directory.path().display());
    processes_block_nobody("processes_that_need_slots_of_two_queues_block_nobody", &url);
}

#[cfg(feature = "sqlite")]
#[test]
fn in_one_sqlite_database_neither() {
    if Process::is_copy() {
        return obey();
    }
    let directory = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}/both.db", directory.path().display());
    processes_block_nobody("in_one_sqlite_database_neither", &url);
}

#[cfg(feature = "redis")]
#[test]
#[ignore = "needs redis-server: scripts/test runs it"]
fn in_one_redis_neither() {
    if Process::is_copy() {
        return obey();
    }
    processes_block_nobody("in_one_redis_neither", RedisServer::start().url());
}

#[cfg(feature = "postgres")]
#[test]
#[ignore = "needs postgresql: scripts/test runs it"]
fn in_one_postgresql_neither() {
    if Process::is_copy() {
        return obey();
    }
    processes_block_nobody("in_one_postgresql_neither", PostgresServer::start().url());
}
