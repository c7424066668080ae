//! T10: counts equal rows, every attempt is recorded, and a task explains why it does not run.

use std::time::Duration;

use interval_queue_contract::Micros;
use interval_queue_task_contract::{AttemptEnd, Change, Counted, NewTask, OnFailure, Outcome, State, Why};

use crate::{
    Handles,
    client::{behind, in_seconds, kind, seconds, task, usual, with_key},
};

pub async fn every_attempt_is_recorded(handles: Handles) {
    let queue = usual(handles).await.0;
    let id = queue.add_one(task()).await;
    let mut worker = queue.worker();
    let ends = [
        (Outcome::Error("no".into()), AttemptEnd::Error),
        (Outcome::Retry(Micros::ZERO, "later".into()), AttemptEnd::Retry),
        (Outcome::Released, AttemptEnd::Released),
        (Outcome::Unable("no room for a process".into()), AttemptEnd::Released),
    ];
    let errors = [Some("no"), Some("later"), None, Some("no room for a process")];
    for (n, (outcome, end)) in ends.into_iter().enumerate() {
        let run = worker.one().await;
        queue.pass(Duration::from_secs(3)).await;
        worker.end(run, outcome).await;
        let attempt = queue.row(id).await.history[n].clone();
        assert_eq!((attempt.token, attempt.worker, attempt.end), (run.1, Some(worker.id), end));
        assert_eq!(attempt.error.as_deref(), errors[n], "{end:?}");
        assert_eq!(attempt.ended - attempt.leased.unwrap(), seconds(3));
        queue.pass(Duration::from_secs(20)).await;
        worker.tidy().await;
    }
    assert_eq!(queue.counted(Counted::EverLeased).await, 4);
}

pub async fn a_task_says_why_it_does_not_run(handles: Handles) {
    let queue = usual(handles).await.0;
    let up = NewTask { not_before: in_seconds(60), ..task() };
    let ids = queue
        .add([
            behind([], OnFailure::Run),
            up.clone(),
            behind([up.id], OnFailure::Run),
            NewTask { kind: kind("x"), ..task() },
        ])
        .await;
    let with_key = queue.add([with_key("k"), with_key("k")]).await;
    assert_eq!(queue.stored(with_key[1]).await.why, Some(Why::NoStep));
    queue.worker().tidy().await;
    let mut why = Vec::new();
    for id in ids.iter().chain(&with_key) {
        why.push(queue.stored(*id).await.why.unwrap());
    }
    assert_eq!(
        why,
        [Why::Next, Why::Time(seconds(60)), Why::Upstreams, Why::Unserved, Why::Next, Why::Key(None)]
    );
    queue.change(Change::Pause).await;
    assert_eq!(queue.stored(ids[0]).await.why, Some(Why::Paused));
    assert_eq!(queue.counted(Counted::Now(State::Waiting)).await, 1);
}
