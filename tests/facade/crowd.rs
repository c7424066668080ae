//! Very many jobs at once, and very many queues.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use futures::future::join_all;
use interval_queue::{IntervalQueue, IntervalQueues, MemoryState};
use interval_queue_redis::{RedisState, RedisStore};
use interval_queue_test_support::RedisServer;
use rustix::time::{ClockId, clock_gettime};

use crate::common::{Starts, open};

/// How long it takes to add so many jobs in one future, and to run them.
async fn takes(jobs: usize) -> Duration {
    let queue = open(MemoryState::new(), Duration::from_micros(1)).await;
    let (starts, began) = (Starts::new(), worked());
    let handles = join_all((0..jobs).map(|job| queue.add(starts.job(job)))).await;
    let done = join_all(handles.into_iter().map(|handle| handle.unwrap())).await;
    assert!(done.into_iter().all(|result| result.is_ok()));
    assert_eq!(starts.jobs(), (0..jobs).collect::<Vec<_>>());
    worked() - began
}

/// How long this thread has had a processor, which is what all that runs here takes; other programs do not count.
fn worked() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().unwrap()
}

#[tokio::test]
async fn ten_times_the_jobs_take_about_ten_times_as_long() {
    takes(100).await;
    // The least of a few, as caches are shared.
    let mut few = Duration::MAX;
    let mut many = Duration::MAX;
    for _ in 0..5 {
        few = few.min(takes(2_000).await);
        many = many.min(takes(20_000).await);
    }
    assert!(many < few * 40, "{few:?} {many:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs redis-server: scripts/test runs it"]
async fn three_thousand_queues_at_once_share_one_connection() {
    let server = RedisServer::start();
    // However busy the machine is. That few of them are under way at once is a test of the backend.
    let builder = RedisStore::builder(server.url()).unwrap().timeout(Duration::from_secs(60));
    let state = RedisState::on(&builder.connect().await.unwrap());
    let failures = Arc::new(AtomicUsize::new(0));
    let queues = {
        let failures = failures.clone();
        IntervalQueues::new(state, move |key| {
            let failures = failures.clone();
            // A host that takes longer than a command may is no failure of the connection.
            let count = move |error: &interval_queue::Error| {
                let is_late = error.to_string().contains("did not answer within");
                failures.fetch_add(usize::from(!is_late), Relaxed);
            };
            IntervalQueue::builder(format!("host/{key}")).interval(Duration::from_secs(1)).on_error(count)
        })
    };
    let mut opened = Vec::new();
    for keys in (0..3_000).collect::<Vec<_>>().chunks(100) {
        let some = join_all(keys.iter().map(|key| queues.get(key.to_string()))).await;
        opened.extend(some.into_iter().map(Result::unwrap));
    }
    // The server knows the script of none of them.
    server.command(&["SCRIPT", "FLUSH"]);
    let job = |queue: IntervalQueue| tokio::spawn(async move { queue.add(async {}).await?.await });
    let jobs: Vec<_> = opened.into_iter().map(job).collect();
    for job in jobs {
        job.await.unwrap().unwrap();
    }
    assert_eq!(failures.load(Relaxed), 0, "failures of which the application was told");
    let clients = server.command(&["CLIENT", "LIST"]).concat();
    let clients = clients.lines().filter(|line| !line.contains("cmd=client"));
    assert_eq!(clients.count(), 1, "connections");
}
