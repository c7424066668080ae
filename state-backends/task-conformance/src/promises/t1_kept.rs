//! T1: an acknowledged add is stored whole, a repeat adds nothing, and nothing is dropped silently.

use interval_queue_contract::Micros;
use interval_queue_task_contract::{Added, OnFailure, Outcome, State};

use crate::{
    Handles,
    client::{behind, task, usual},
};

pub async fn a_batch_is_whole_and_a_repeated_one_adds_nothing(handles: Handles) {
    let queue = usual(handles).await.0;
    let (first, second) = (task(), task());
    let batch = vec![first.clone(), behind([first.id], OnFailure::Cancel)];
    queue.add(batch.clone()).await;
    let half = vec![second.clone(), behind([task().id], OnFailure::Cancel)];
    queue.try_add(half, Micros::ZERO).await.unwrap_err();
    assert!(queue.find(second.id).await.is_none());
    let mut worker = queue.worker();
    worker.run().await;
    let again = queue.try_add(batch.clone(), Micros::ZERO).await.unwrap();
    assert_eq!(again, batch.iter().map(|new| Added::Again(new.id)).collect::<Vec<_>>());
    assert_eq!(worker.run().await, batch[1].id);
    assert_eq!(worker.take(9).await, []);
}

pub async fn a_task_that_cannot_go_on_is_there_with_its_reason(handles: Handles) {
    let queue = usual(handles).await.0;
    let up = queue.add_one(task()).await;
    let down = queue.add_one(behind([up], OnFailure::Cancel)).await;
    let mut worker = queue.worker();
    let run = worker.one().await;
    worker.end(run, Outcome::Failed("no such address".into())).await;
    worker.tidy().await;
    let (up_row, down_row) = (queue.row(up).await, queue.row(down).await);
    assert_eq!((up_row.state, up_row.error.as_deref()), (State::Failed, Some("no such address")));
    assert_eq!(down_row.state, State::Cancelled);
    assert!(down_row.error.is_some_and(|error| error.contains(&up.to_string())));
}
