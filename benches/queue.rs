//! What the queue adds to its state: from `add` to the start on an idle queue;
//! how many jobs can start; and a shard in which a million wait.
//!
//!     cargo bench --bench queue

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a benchmark that fails says so")]
#![allow(clippy::disallowed_methods, reason = "it measures time")]

mod common;

use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput};
use interval_queue::{IntervalQueue, JobHandle, MemoryState};
use tokio::runtime::Runtime;

use common::{
    load::{Load, add_all},
    places::Backend,
};

const NO_WAIT: Duration = Duration::from_micros(1);
const LONG_WAIT: Duration = Duration::from_secs(366 * 24 * 3600);
/// How many jobs wait in a long line.
const MANY: u64 = 1_000_000;
/// How many starts are counted at once.
const STARTS: u64 = 10_000;

fn main() {
    let mut criterion = common::criterion();
    let runtime = common::runtime();
    for place in Backend::all() {
        idle(&mut criterion, &runtime, &place);
    }
    let many = if common::is_dry() { STARTS } else { MANY };
    for waiting in [STARTS, many] {
        starts(&mut criterion, &runtime, waiting);
    }
    long_line(&mut criterion, &runtime, many);
    criterion.final_summary();
}

/// From the call of `add` until the job runs, on a queue with nothing to do; and the same until all has come
/// to rest.
fn idle(criterion: &mut Criterion, runtime: &Runtime, place: &Backend) {
    let queue = runtime.block_on(async {
        IntervalQueue::builder("idle").interval(NO_WAIT).open(place.open().await).await.unwrap()
    });
    criterion.bench_function(&format!("queue/{}, idle: add until it starts", place.name), |bencher| {
        bencher.iter_custom(|count| {
            runtime.block_on(async {
                let mut until_start = Duration::ZERO;
                for _ in 0..count {
                    let began = Instant::now();
                    let started = queue.add(async { Instant::now() }).await.unwrap().await.unwrap();
                    until_start += started - began;
                    queue.wait_idle().await;
                }
                until_start
            })
        });
    });
}

/// The first of so many jobs that wait in a paused queue start once it is resumed.
fn starts(criterion: &mut Criterion, runtime: &Runtime, waiting: u64) {
    let starts = STARTS.min(waiting);
    let load = runtime.block_on(async {
        let load = Load::new().await;
        // Here, since criterion plans by how long the first round takes.
        load.fill(waiting).await;
        load
    });
    let mut group = criterion.benchmark_group(format!("queue/memory, {waiting} wait"));
    group.throughput(Throughput::Elements(starts)).sample_size(10);
    group.bench_function(format!("start {starts}"), |bencher| {
        bencher.iter_custom(|count| {
            runtime.block_on(async {
                let mut until_last = Duration::ZERO;
                for _ in 0..count {
                    load.fill(waiting).await;
                    until_last += load.start(starts).await;
                }
                until_last
            })
        });
    });
    group.finish();
    runtime.block_on(load.end());
}

/// What one job more or less costs where many wait.
fn long_line(criterion: &mut Criterion, runtime: &Runtime, many: u64) {
    let (queue, mut handles) = runtime.block_on(async {
        let queue =
            IntervalQueue::builder("long").interval(LONG_WAIT).open(MemoryState::new()).await.unwrap();
        // The first starts at once.
        queue.add(async {}).await.unwrap().await.unwrap();
        let handles = add_all(&queue, many, || async {}).await;
        (queue, handles)
    });
    assert_eq!(queue.waiting() as u64, many);

    criterion.bench_function(&format!("queue/memory, {many} wait: add one"), |bencher| {
        bencher.iter_custom(|count| {
            runtime.block_on(async {
                let began = Instant::now();
                let mut added = Vec::with_capacity(count as usize);
                for _ in 0..count {
                    added.push(queue.add(async {}).await.unwrap());
                }
                let took = began.elapsed();
                assert!(added.iter().all(JobHandle::cancel), "none of them may start");
                took
            })
        });
    });

    // Spread over the line, each one another job.
    let mut at = 0;
    criterion.bench_function(&format!("queue/memory, {many} wait: cancel one"), |bencher| {
        bencher.iter_custom(|count| {
            runtime.block_on(async {
                let mut took = Duration::ZERO;
                for _ in 0..count {
                    at = (at + 7_919) % handles.len();
                    let began = Instant::now();
                    assert!(handles[at].cancel(), "it waits");
                    took += began.elapsed();
                    handles[at] = queue.add(async {}).await.unwrap();
                }
                took
            })
        });
    });
    drop(handles);
    runtime.block_on(queue.shutdown(Duration::from_secs(60)));
}
