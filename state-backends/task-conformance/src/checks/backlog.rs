//! A large backlog of tasks that wait to be admitted: it holds up neither ready work nor urgent tasks, and is admitted in
//! the end.

use std::time::Duration;

use interval_queue_contract::Micros;
use interval_queue_task_contract::{Counted, NewTask, State, Step, When};

use crate::{
    Handles,
    client::{Client, Worker, done, keyed, kind, seconds, task, usual},
};

/// More tasks than a few steps admit.
const MANY: usize = 600;
/// The most tasks that a step admits which is given all that it wants.
const FEW: u64 = 25;
/// How often the rules let a step admit tasks that needs none.
const SWEEP: Duration = Duration::from_millis(100);
/// The longest time after which a worker with room comes back.
const LOOK_AGAIN: Micros = Micros::from_millis(1_000);

/// Tasks behind two keys.
fn behind_two_keys(count: usize) -> impl Iterator<Item = NewTask> {
    (0..count).map(|n| keyed(["a", "b"][n % 2]))
}

/// Tasks of a kind that no other worker of a check serves.
fn of_kind(name: &'static str, tasks: impl Iterator<Item = NewTask>) -> impl Iterator<Item = NewTask> {
    tasks.map(move |task| NewTask { kind: kind(name), ..task })
}

/// How many tasks wait to be admitted.
async fn backlog(queue: &Client) -> u64 {
    queue.counted(Counted::Now(State::Added)).await + queue.counted(Counted::Now(State::Scheduled)).await
}

/// A worker that holds a task which runs for long.
async fn busy(queue: &Client) -> Worker {
    queue.add(of_kind("long", std::iter::once(task()))).await;
    let mut worker = queue.worker_of(&["long"]);
    worker.one().await;
    worker
}

/// Steps as a worker does that has room for one more task, until the backlog is admitted. Returns how much time the store
/// asked it to let pass.
async fn admit_all(queue: &Client, worker: &mut Worker) -> Micros {
    let mut passed = Micros::ZERO;
    for _ in 0..MANY {
        if backlog(queue).await == 0 {
            return passed;
        }
        let step = Step { want: 1, ..worker.step() };
        let stepped = worker.send(step).await;
        for leased in &stepped.leased {
            worker.end((leased.task.id, leased.task.token), done()).await;
        }
        if !stepped.more && stepped.leased.is_empty() {
            let next = stepped.next.expect("a worker with room comes back for a backlog");
            assert!(next <= LOOK_AGAIN, "{next:?}");
            queue.pass(next.to_duration()).await;
            passed = passed + next;
        }
    }
    panic!("{} tasks are left", backlog(queue).await)
}

/// A step that is given all that it wants admits few tasks of a backlog, and so do many steps that follow at once.
async fn is_bounded(queue: Client, worker: &mut Worker) {
    let (before, runs) = (backlog(&queue).await, 5);
    assert!(before > 2 * runs * FEW, "{before} tasks are too few");
    let ready = queue.add((0..runs).map(|_| NewTask { priority: 1, ..task() })).await;
    // The step that leases a task and the one that completes it may both be due to sweep.
    for (steps, id) in (1..).step_by(2).zip(ready) {
        let run = worker.one().await;
        assert_eq!(run.0, id);
        let admitted = before - backlog(&queue).await;
        assert!(admitted <= steps * FEW, "{steps} steps admit {admitted} tasks");
        worker.end(run, done()).await;
    }
}

/// Tasks that were added behind two keys.
pub async fn a_backlog_behind_keys_holds_up_no_ready_work(handles: Handles) {
    let (one, other) = usual(handles).await;
    let mut worker = other.worker();
    worker.tidy().await;
    one.add(behind_two_keys(MANY)).await;
    is_bounded(one, &mut worker).await;
}

/// Tasks that are due at one instant.
pub async fn a_backlog_that_is_due_holds_up_no_ready_work(handles: Handles) {
    let (one, other) = usual(handles).await;
    let mut worker = other.worker();
    worker.tidy().await;
    let at = When::At(one.overview().await.at + seconds(100));
    one.add((0..MANY).map(|_| NewTask { not_before: at, ..task() })).await;
    one.pass(Duration::from_secs(100)).await;
    is_bounded(one, &mut worker).await;
}

/// A sweep comes at most once in a while, however many steps there are. Each lets some tasks in, due ones and added ones.
pub async fn a_backlog_is_admitted_beside_ready_work(handles: Handles) {
    let (one, other) = usual(handles).await;
    let mut worker = other.worker();
    worker.tidy().await;
    let at = When::At(one.overview().await.at + seconds(100));
    one.add((0..MANY).map(|_| NewTask { not_before: at, ..task() })).await;
    one.pass(Duration::from_secs(100)).await;
    one.add(behind_two_keys(MANY)).await;
    let sweeps = 2 * MANY as u64 / FEW;
    one.add((0..2 * sweeps + 2).map(|_| NewTask { priority: 1, ..task() })).await;
    let mut admitted = 0;
    for n in 1..=sweeps {
        one.pass(SWEEP).await;
        // The second one comes too soon after the first.
        worker.run().await;
        worker.run().await;
        let scheduled = MANY as u64 - one.counted(Counted::Now(State::Scheduled)).await;
        let added = MANY as u64 - one.counted(Counted::Now(State::Added)).await;
        assert!(scheduled + added - admitted <= FEW, "sweep {n} admits {scheduled} and {added}");
        assert!(scheduled.abs_diff(added) <= n, "{scheduled} due ones and {added} added ones");
        admitted = scheduled + added;
    }
    assert_eq!(admitted, 2 * MANY as u64);
}

/// An urgent task behind a gate passes it in front of a backlog, and is leased.
pub async fn an_urgent_task_passes_a_backlog(handles: Handles) {
    let (one, other) = usual(handles).await;
    let mut worker = other.worker();
    worker.tidy().await;
    let at = one.overview().await.at + seconds(100);
    one.add((0..MANY).map(|_| NewTask { not_before: When::At(at), ..task() })).await;
    one.pass(Duration::from_secs(99)).await;
    one.add(behind_two_keys(MANY)).await;
    one.add((0..9).map(|_| NewTask { priority: 1, ..task() })).await;
    one.pass(Duration::from_secs(2)).await;
    let ready = one.add_one(NewTask { priority: 4, ..task() }).await;
    let behind_a_key = one.add_one(NewTask { priority: 3, ..keyed("c") }).await;
    assert_eq!([worker.run().await, worker.run().await], [ready, behind_a_key]);
}

/// While nobody runs anything, workers of other kinds admit all of it at once.
pub async fn a_backlog_is_admitted_without_its_workers(handles: Handles) {
    let (one, other) = usual(handles).await;
    let mut stranger = other.worker_of(&["other"]);
    stranger.tidy().await;
    one.add(behind_two_keys(MANY)).await;
    assert_eq!(admit_all(&one, &mut stranger).await, Micros::ZERO);
}

/// Beside workers that run something, those of other kinds admit it slowly, and only one of them.
pub async fn a_worker_of_another_kind_admits_a_backlog_slowly(handles: Handles) {
    let (one, other) = usual(handles).await;
    let mut busy = busy(&one).await;
    let mut strangers = [other.worker_of(&["other"]), other.worker_of(&["other"])];
    for stranger in &mut strangers {
        stranger.tidy().await;
    }
    one.add(behind_two_keys(MANY)).await;
    for _ in 0..5 {
        one.pass(SWEEP).await;
        let before = backlog(&one).await;
        let mut nexts = Vec::new();
        for stranger in &mut strangers {
            let step = Step { want: 1, ..stranger.step() };
            let stepped = stranger.send(step).await;
            assert!(!stepped.more, "it would come again at once");
            nexts.push(stepped.next);
        }
        assert_eq!(before - backlog(&one).await, FEW);
        assert_eq!(nexts, [Some(Micros::from_duration(SWEEP)), Some(LOOK_AGAIN)]);
    }
    admit_all(&one, &mut strangers[0]).await;
    busy.beat().await;
}

/// A worker of the same kind does not go on for tasks that only wait behind others of their keys.
pub async fn a_worker_with_room_admits_a_backlog_in_the_end(handles: Handles) {
    let (one, other) = usual(handles).await;
    let mut busy = busy(&one).await;
    let mut worker = other.worker();
    one.add(behind_two_keys(MANY)).await;
    admit_all(&one, &mut worker).await;
    busy.beat().await;
    assert_eq!(one.counted(Counted::Now(State::Added)).await, 0);
}
