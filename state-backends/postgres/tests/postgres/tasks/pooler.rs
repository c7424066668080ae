//! PgBouncer between the store and the server. It pools transactions.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use interval_queue_postgres::PostgresTasks;
use interval_queue_task_contract::TaskStore;
use interval_queue_test_support::{PgBouncer, files::skipped};
use tokio::runtime::{Builder, Runtime};

use super::support::*;
use crate::common::*;

const CONNECTIONS: usize = 3;
const WORKERS: u64 = 4;
const PRODUCERS: u64 = 2;
const ADDS: u64 = 60;

/// What a process has for itself. Dropped, it ends its connections, as the end of the process does.
fn process() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

/// Each task is added by a process of its own, which ends as soon as it has the answer. Its connection is given to
/// others then, and is as if it was new. Takes ten seconds: that is hundreds of processes.
#[test]
#[ignore = "needs postgresql: scripts/test runs it"]
fn processes_come_and_go_through_a_pooler() {
    let server = PostgresServer::start();
    let Some(pooler) = PgBouncer::start(&server, CONNECTIONS) else {
        return skipped("processes_come_and_go_through_a_pooler", "pgbouncer");
    };
    // Nothing is to be waited for too long on a busy host.
    let url = format!("{}?timeout=120s", pooler.url());
    let (url, is_over) = (url.as_str(), AtomicBool::new(false));
    let add_one = |n: u64| {
        let added = process().block_on(async {
            let tasks = PostgresTasks::connect(url).await?;
            tasks.apply(&mail(), add([task(n)])).await
        });
        added.unwrap_or_else(|error| panic!("add {n}: {error:?}"));
    };
    let work = |worker: u64| {
        process().block_on(async {
            let tasks = PostgresTasks::connect(url).await.unwrap();
            let mut hand = Hand::new(&tasks, worker);
            let (mut held, mut ended) = (Vec::new(), 0);
            while !is_over.load(Ordering::Relaxed) {
                held = hand.step(done(&held), 2).await.leased;
                ended += held.len() as u64;
            }
            hand.step(done(&held), 0).await;
            ended
        })
    };
    // So that workers find the queue.
    add_one(0);
    let (add_one, work) = (&add_one, &work);
    let ended = thread::scope(|scope| {
        let workers: Vec<_> = (1..=WORKERS).map(|worker| scope.spawn(move || work(worker))).collect();
        let numbers = |producer: u64| (1 + producer * ADDS)..=((producer + 1) * ADDS);
        let produce = |producer| scope.spawn(move || numbers(producer).for_each(add_one));
        let producers: Vec<_> = (0..PRODUCERS).map(produce).collect();
        let produced: Vec<_> = producers.into_iter().map(|producer| producer.join()).collect();
        is_over.store(true, Ordering::Relaxed);
        let ended: u64 = workers.into_iter().map(|worker| worker.join().unwrap()).sum();
        assert!(produced.iter().all(Result::is_ok), "{}", pooler.log());
        ended
    });
    assert!(ended > 0, "nothing ran meanwhile");
}
