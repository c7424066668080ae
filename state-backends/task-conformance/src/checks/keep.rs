//! How long ended tasks are kept.

use std::time::Duration;

use interval_queue_contract::Micros;
use interval_queue_task_contract::{
    Counted, Keep, NewTask, OnFailure, Order, Outcome, Selector, SettingsChange, State, Verb,
};

use crate::client::{Handles, SHORT, attempts, behind, done, in_seconds, opened, task, usual, with_key};

const MINUTE: Duration = Duration::from_secs(60);

/// Ended tasks are kept as long as set for their outcome, at least 20 minutes.
pub async fn ended_tasks_are_kept_as_long_as_said(handles: Handles) {
    let minutes = |n: u64| Micros::from_millis(n * 60_000);
    let keep = Keep { done: Micros::ZERO, failed: minutes(60), cancelled: minutes(40), ..Keep::default() };
    let (one, other) =
        opened(handles, SettingsChange { keep: Some(keep), ..SettingsChange::default() }).await;
    let ids = one.add((0..3).map(|_| NewTask { policy: attempts(1), ..task() })).await;
    let mut worker = other.worker();
    let runs = worker.lease(2).await;
    worker.end((ids[0], runs[0].task.token), done()).await;
    worker.end((ids[1], runs[1].task.token), Outcome::Error("no".into())).await;
    one.touch(Verb::Cancel, [ids[2]]).await;
    let mut left = Vec::new();
    for _ in 0..7 {
        one.live(&mut worker, MINUTE * 10 - Duration::from_secs(2)).await;
        worker.tidy().await;
        left.push(one.rows().await.len());
        one.live(&mut worker, Duration::from_secs(2)).await;
        worker.tidy().await;
    }
    assert_eq!(left, [3, 3, 2, 2, 1, 1, 0]);
}

/// After a clock step an id is kept for 20 minutes of the lease clock.
pub async fn a_step_of_the_clock_forgets_no_id(handles: Handles) {
    let (one, other) = usual(handles).await;
    let new = task();
    one.add_one(new.clone()).await;
    let mut worker = other.worker();
    worker.run().await;
    one.clock().advance(Duration::from_secs(30 * 86_400));
    worker.hello().await;
    assert_eq!(one.state(new.id).await, State::Done);
    one.live(&mut worker, MINUTE * 21).await;
    worker.tidy().await;
    assert_eq!(one.rows().await, []);
}

/// A task is deleted only after its downstreams, which may need its result again.
pub async fn inputs_are_kept_for_downstreams(handles: Handles) {
    let keep = Keep { done: Micros::ZERO, failed: Micros::ZERO, cancelled: Micros::ZERO, ..Keep::default() };
    let (one, other) =
        opened(handles, SettingsChange { keep: Some(keep), ..SettingsChange::default() }).await;
    let ups = one.add([task(), task()]).await;
    let down = one.add_one(behind(ups.clone(), OnFailure::Cancel)).await;
    let mut worker = other.worker();
    worker.run().await;
    worker.run().await;
    one.live(&mut worker, MINUTE * 30).await;
    assert_eq!(one.states(&ups).await, [State::Done; 2]);
    let page = one.page(Selector::default(), Order::Ended.start(), 9).await;
    let mut listed: Vec<_> = page.tasks.iter().map(|stored| stored.task.id).collect();
    listed.sort_unstable_by_key(|id| ups.iter().position(|up| up == id));
    assert_eq!(listed, ups, "retained tasks are in pages by their end");
    assert_eq!(worker.run().await, down);
    one.live(&mut worker, MINUTE * 19).await;
    assert_eq!(one.rows().await.len(), 3);
    one.live(&mut worker, MINUTE * 10).await;
    worker.tidy().await;
    assert_eq!(one.rows().await, []);
}

/// A purged id is kept: a repeated add does not run it again.
pub async fn the_id_of_a_purged_task_is_kept(handles: Handles) {
    let (one, other) = usual(handles).await;
    let new = task();
    one.add_one(new.clone()).await;
    let mut worker = other.worker();
    worker.run().await;
    one.touch(Verb::Purge, [new.id]).await;
    one.live(&mut worker, MINUTE * 19).await;
    let again = other.try_add(vec![new.clone()], Micros::ZERO).await.unwrap();
    assert_eq!(again, [interval_queue_task_contract::Added::Again(new.id)]);
    one.live(&mut worker, MINUTE * 2).await;
    worker.tidy().await;
    assert_eq!(one.rows().await, []);
}

/// A dead worker is kept for an hour, to recognize late requests.
pub async fn a_dead_worker_is_forgotten_after_an_hour(handles: Handles) {
    use interval_queue_task_contract::{Read, Reply};
    let (one, other) = usual(handles).await;
    one.worker().beat().await;
    let mut witness = other.worker();
    let mut seen = Vec::new();
    for _ in 0..4 {
        one.live(&mut witness, MINUTE * 20).await;
        let Reply::Workers(workers) = one.read(Read::Workers).await else {
            panic!("a read shows no workers")
        };
        seen.push(workers.len());
    }
    assert_eq!(seen, [2, 2, 2, 1]);
}

/// Tasks of a dead worker count as lost even before a poll.
pub async fn tasks_of_a_dead_worker_are_lost(handles: Handles) {
    let (one, other) = usual(handles).await;
    let ids = one.add((0..3).map(|_| task())).await;
    let mut dead = one.worker().with_lease(SHORT);
    assert_eq!(dead.take(2).await, ids[..2]);
    assert_eq!((one.overview().await.lost, one.stored(ids[0]).await.why), (0, None));
    one.pass(Duration::from_millis(1_500)).await;
    let overview = other.overview().await;
    assert_eq!((overview.workers, overview.lost), (0, 2));
    assert_eq!(other.counted(Counted::Now(State::Leased)).await, 2);
    assert_eq!(one.stored(ids[1]).await.why, Some(interval_queue_task_contract::Why::Lost));
    let mut living = other.worker();
    assert_eq!(living.take(1).await, ids[2..]);
    one.live(&mut living, MINUTE * 5).await;
    let overview = one.overview().await;
    assert_eq!((overview.workers, overview.lost), (1, 0));
    assert_eq!(one.counted(Counted::Now(State::Leased)).await, 1);
}

/// A wait starts when the task could run: at its time, or after its last run.
pub async fn a_task_is_ready_since_its_last_gate(handles: Handles) {
    let (one, other) = usual(handles).await;
    let oldest = async || {
        let overview = other.overview().await;
        overview.oldest.map(|since| (overview.at - since).get() / 1_000_000)
    };
    assert_eq!(oldest().await, None);
    let mut worker = one.worker();
    worker.beat().await;
    one.add_one(NewTask { not_before: in_seconds(60), ..task() }).await;
    one.live(&mut worker, MINUTE).await;
    one.live(&mut worker, Duration::from_secs(5)).await;
    worker.tidy().await;
    assert_eq!(oldest().await, Some(5));
    let run = worker.one().await;
    assert_eq!(oldest().await, None);
    one.live(&mut worker, MINUTE).await;
    worker.end(run, Outcome::Released).await;
    one.live(&mut worker, Duration::from_secs(7)).await;
    assert_eq!(oldest().await, Some(7));
    // The longest wait counts, in any order.
    one.add_one(NewTask { priority: 9, ..task() }).await;
    one.live(&mut worker, Duration::from_secs(1)).await;
    assert_eq!(oldest().await, Some(8));
}

/// A wait starts when key and upstreams let the task run.
pub async fn a_task_is_ready_since_its_key_or_its_upstreams_let_it_in(handles: Handles) {
    let (one, other) = usual(handles).await;
    let oldest = async || {
        let overview = other.overview().await;
        overview.oldest.map(|since| (overview.at - since).get() / 1_000_000)
    };
    let mut worker = one.worker();
    let holder = with_key("k");
    one.add([holder.clone(), with_key("k"), behind([holder.id], OnFailure::Cancel)]).await;
    let run = worker.one().await;
    one.live(&mut worker, MINUTE).await;
    assert_eq!(oldest().await, None);
    worker.end(run, done()).await;
    one.live(&mut worker, Duration::from_secs(3)).await;
    worker.tidy().await;
    assert_eq!(oldest().await, Some(3));
    // The wait continues while the task is ready.
    one.live(&mut worker, Duration::from_secs(4)).await;
    assert_eq!(oldest().await, Some(7));
}
