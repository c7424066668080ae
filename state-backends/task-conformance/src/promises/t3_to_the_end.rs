//! T3: a dead worker's task runs again, up to its attempts; one attempt means at most once.

use std::time::Duration;

use interval_queue_contract::Micros;
use interval_queue_task_contract::{NewTask, State, Step};

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

/// An idle worker with a long lease is notified of a shorter one and polls often enough for it.
pub async fn a_short_lease_ends_in_time_among_the_idle(handles: Handles) {
    let (queue, other) = usual(handles).await;
    let mut idle = other.worker();
    let wants = Step { want: 1, ..idle.step() };
    assert_eq!(idle.send(wants).await.next, None, "it has no reason to poll again");
    let mut changes = queue.store().changes(queue.queue()).await.ok();
    let id = queue.add_one(task()).await;
    let mut worker = queue.worker().with_lease(SHORT);
    worker.tidy().await;
    if let Some(changes) = &mut changes {
        crate::checks::await_quiescence(changes).await;
    }
    assert_eq!(worker.take(1).await, [id]);
    if let Some(changes) = &mut changes {
        crate::checks::notified(changes, "a lease that is shorter than that of others").await;
    }
    // The worker dies. The idle one polls when notified, then as replies demand.
    let mut passed = Duration::ZERO;
    while queue.state(id).await == State::Leased && passed < Duration::from_secs(10) {
        let wants = Step { want: 1, ..idle.step() };
        let stepped = idle.send(wants).await;
        if stepped.leased.is_empty() {
            let next = stepped.next.unwrap().to_duration();
            queue.pass(next).await;
            passed += next;
        } else {
            break;
        }
    }
    assert!(passed <= Duration::from_secs(2), "it took {passed:?}");
    assert_eq!(queue.row(id).await.failures, 1);
}

/// A lease ends between two polls, the second too early to notice: a poll soon follows.
pub async fn a_lease_that_ends_unseen_is_looked_for_soon(handles: Handles) {
    let (queue, other) = usual(handles).await;
    let id = queue.add_one(task()).await;
    let mut worker = queue.worker().with_lease(SHORT);
    assert_eq!(worker.take(1).await, [id]);
    let mut idle = other.worker();
    for _ in 0..400 {
        let wants = Step { want: 1, ..idle.step() };
        let stepped = idle.send(wants).await;
        if queue.state(id).await != State::Leased || !stepped.leased.is_empty() {
            break;
        }
        assert!(stepped.next.unwrap() <= Micros::from_millis(250), "{stepped:?}");
        queue.pass(Duration::from_millis(30)).await;
    }
    assert_eq!(queue.row(id).await.failures, 1);
}
