//! T11: replies to idle workers contain the next poll, and ended tasks are deleted in time.

use std::time::Duration;

use interval_queue_contract::Micros;
use interval_queue_task_contract::{Added, MIN_LEASE, NewTask, Read, Reply, State, Step};

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

pub async fn ended_tasks_are_purged_without_a_cleaner(handles: Handles) {
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

const DAY: Duration = Duration::from_secs(86_400);

/// Once a day a worker runs the tasks. None lives in between.
pub async fn ended_tasks_are_purged_while_workers_come_and_go(handles: Handles) {
    let queue = usual(handles).await.0;
    for day in 0..26 {
        queue.add([task(), task()]).await;
        let mut worker = queue.worker();
        worker.tidy().await;
        worker.run().await;
        worker.run().await;
        let goodbye = Step { lease: MIN_LEASE, ..worker.step() };
        worker.send(goodbye).await;
        let Reply::Workers(workers) = queue.read(Read::Workers).await else { panic!("no workers") };
        assert_eq!(workers.len(), 1, "on day {day} those of other days are not of this hour");
        queue.pass(DAY).await;
    }
    let kept = queue.rows().await.len();
    assert!(kept <= 6, "{kept} tasks of 26 days are kept, and a day is what the queue says");
}

/// After clock steps without held leases, an `add` repeated within ten minutes finds its task.
pub async fn a_stepped_clock_forgets_no_id(handles: Handles) {
    let queue = usual(handles).await.0;
    let new = task();
    queue.add_one(new.clone()).await;
    let mut worker = queue.worker();
    worker.run().await;
    for _ in 0..3 {
        queue.clock().advance(30 * DAY);
        worker.hello().await;
        queue.clock().step_back(30 * DAY);
        worker.hello().await;
    }
    queue.clock().advance(30 * DAY);
    for _ in 0..9 {
        worker.hello().await;
        let again = queue.try_add(vec![new.clone()], Micros::ZERO).await.unwrap();
        assert_eq!(again, [Added::Again(new.id)]);
        assert_eq!(queue.state(new.id).await, State::Done);
        queue.pass(Duration::from_secs(60)).await;
    }
}
