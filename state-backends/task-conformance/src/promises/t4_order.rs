//! T4: ready tasks are leased in the order of `due`, a retry keeps its place, and nobody starves.

use std::time::Duration;

use interval_queue_task_contract::{NewTask, Outcome};

use crate::{
    Handles,
    client::{done, kind, task, usual},
};

pub async fn a_task_that_has_waited_a_day_goes_before_one_a_priority_higher(handles: Handles) {
    let queue = usual(handles).await.0;
    let first = queue.add_one(task()).await;
    queue.pass(Duration::from_secs(86_400 - 1)).await;
    let urgent = queue.add_one(NewTask { priority: 1, kind: kind("urgent"), ..task() }).await;
    queue.pass(Duration::from_secs(2)).await;
    let late = queue.add_one(NewTask { priority: 1, ..task() }).await;
    let mut worker = queue.worker_of(&["default", "urgent"]);
    assert_eq!(worker.take(9).await, [urgent, first, late]);
}

pub async fn a_retry_keeps_its_place(handles: Handles) {
    let queue = usual(handles).await.0;
    let first = queue.add_one(task()).await;
    let mut worker = queue.worker();
    let run = worker.one().await;
    queue.pass(Duration::from_secs(1)).await;
    let second = queue.add_one(task()).await;
    worker.end(run, Outcome::Error("again".into())).await;
    queue.pass(Duration::from_secs(10)).await;
    worker.tidy().await;
    let next = worker.one().await;
    assert_eq!(next.0, first);
    worker.end(next, done()).await;
    assert_eq!(worker.run().await, second);
}
