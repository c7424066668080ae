//! Several limits at once on real processes that share two queues.

use std::{
    io::BufRead,
    sync::{Arc, Mutex},
};

use futures::future::join_all;
use interval_queue::{
    IntervalQueue, Limits, connect,
    contract::{Command, QueueName},
};
use interval_queue_test_support::Process;
use rustix::time::{ClockId, clock_gettime};

use crate::process::{Backend, ms};

const JOBS: usize = 40;

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

/// Two processes run all jobs, on queues that share a server or a database, or have a file each.
fn processes_block_nobody(test: &str, place: fn() -> Backend) {
    if Process::is_copy() {
        return obey();
    }
    let place = place();
    let url = place.url.replace("state.json", "{name}.json");
    let said: Arc<Mutex<Vec<(String, u64)>>> = Arc::default();
    let mut processes: Vec<_> = (0..2)
        .map(|_| {
            let said = said.clone();
            let mut process = Process::start(test, move |line| {
                if let Some((what @ ("begin" | "start"), at)) = line.split_once(' ') {
                    said.lock().unwrap().push((what.to_owned(), at.parse().unwrap()));
                }
            });
            process.tell(&url);
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
            let state = connect(&url.replace("{name}", name)).await.unwrap().rates().await.unwrap();
            let reply = state.apply(&QueueName::new(name).unwrap(), Command::Read).await.unwrap();
            reply.read().unwrap().unwrap().record
        });
        assert!(record.shards.is_empty(), "{record:?}");
    }
}

/// A test for each feature.
macro_rules! on {
    ($feature:literal, $test:ident, $place:ident $(, $needs:literal)?) => {
        #[cfg(feature = $feature)]
        #[test]
        $(#[ignore = $needs])?
        fn $test() {
            processes_block_nobody(concat!("limits_processes::", stringify!($test)), Backend::$place);
        }
    };
}
on!("json-file", processes_that_need_slots_of_two_queues_block_nobody, file);
on!("sqlite", in_one_sqlite_database_neither, sqlite);
on!("redis", in_one_redis_neither, redis, "needs redis-server: scripts/test runs it");
on!("postgres", in_one_postgresql_neither, postgres, "needs postgresql: scripts/test runs it");
