//! T11: an idle worker is told when to come again, and what has ended is forgotten in time.

use std::time::Duration;

use interval_queue_task_contract::{NewTask, Step};

use crate::{
    Handles,
    client::{in_seconds, seconds, task, usual},
};

pub async fn an_idle_worker_sleeps_until_there_is_something_to_do(handles: Handles) {
    let queue = usual(handles).await.0;
    let mut worker = queue.worker();
    let idle = Step { want: 1, ..worker.step() };
    assert_eq!(worker.send(idle).await.next, None, "nothing is known of");
    queue.add_one(NewTask { not_before: in_seconds(500), ..task() }).await;
    let idle = Step { want: 1, ..worker.step() };
    assert_eq!(worker.send(idle).await.next, Some(seconds(500)));
}

pub async fn what_has_ended_goes_without_a_cleaner(handles: Handles) {
    let queue = usual(handles).await.0;
    queue.add((0..500).map(|_| task())).await;
    let mut worker = queue.worker();
    for _ in 0..500 {
        worker.run().await;
    }
    queue.live(&mut worker, Duration::from_secs(86_400 - 1)).await;
    assert_eq!(queue.rows().await.len(), 500);
    queue.live(&mut worker, Duration::from_secs(2)).await;
    assert!(worker.tidy().await > 1, "500 are more than one step forgets");
    assert_eq!(queue.rows().await, []);
}
