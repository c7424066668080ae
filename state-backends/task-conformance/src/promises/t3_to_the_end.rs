//! T3: the task of a worker that died runs again, up to its attempts; one attempt means at most once.

use std::time::Duration;

use interval_queue_task_contract::{NewTask, State};

use crate::{
    Handles,
    client::{SHORT, attempts, task, usual},
};

pub async fn deaths_count_until_a_task_has_failed_and_stays(handles: Handles) {
    let queue = usual(handles).await.0;
    let id = queue.add_one(NewTask { policy: attempts(3), ..task() }).await;
    let once = queue.add_one(NewTask { policy: attempts(1), ..task() }).await;
    let mut witness = queue.worker_of(&["witness"]).with_lease(SHORT);
    for death in 1..=3 {
        let mut worker = queue.worker().with_lease(SHORT);
        let runs = worker.take(9).await;
        assert_eq!(runs, if death == 1 { vec![id, once] } else { vec![id] });
        queue.live(&mut witness, Duration::from_secs(2)).await;
        assert_eq!(queue.row(id).await.failures, death);
    }
    assert_eq!(queue.states(&[id, once]).await, [State::Failed; 2]);
    assert_eq!(queue.worker().take(9).await, []);
}

pub async fn an_outage_costs_nobody_an_attempt(handles: Handles) {
    let queue = usual(handles).await.0;
    queue.add([(); 2].map(|()| NewTask { policy: attempts(1), ..task() })).await;
    let (mut first, mut second) = (queue.worker(), queue.worker());
    let runs = [first.one().await, second.one().await];
    queue.pass(Duration::from_secs(86_400)).await;
    first.tidy().await;
    second.end(runs[1], crate::client::done()).await;
    first.end(runs[0], crate::client::done()).await;
}
