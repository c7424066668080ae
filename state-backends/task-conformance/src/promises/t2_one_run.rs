//! T2: a task is leased to at most one worker; a write whose token is not in force changes nothing.

use std::time::Duration;

use interval_queue_task_contract::Outcome;

use crate::{
    Handles,
    client::{SHORT, done, task, usual},
};

pub async fn a_late_worker_changes_nothing_and_is_notified(handles: Handles) {
    let queue = usual(handles).await.0;
    queue.add_one(task()).await;
    let mut late = queue.worker().with_lease(SHORT);
    let old = late.one().await;
    let mut heir = queue.worker().with_lease(SHORT);
    // The first worker's lease ends while the second renews its own.
    queue.live(&mut heir, Duration::from_secs(2)).await;
    let new = heir.one().await;
    assert!(new.0 == old.0 && new.1 > old.1);
    let stepped = late.complete(old, done()).await;
    assert_eq!(stepped.lost, [old.0]);
    assert_eq!(queue.row(new.0).await.token, new.1);
    heir.end(new, Outcome::Failed("its own end".into())).await;
    assert_eq!(queue.row(new.0).await.error.as_deref(), Some("its own end"));
}
