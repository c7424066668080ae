//! A large backlog of unadmitted tasks delays no ready or urgent tasks, and is admitted in the end.

use std::time::Duration;

use interval_queue_contract::Micros;
use interval_queue_task_contract::{Counted, NewTask, State, Step, When};

use crate::{
    Handles,
    client::{Client, Worker, done, kind, seconds, task, usual, with_key},
};

/// More tasks than a few polls admit.
const MANY: usize = 600;
/// Maximum tasks admitted by a poll that is fully served.
const MAX_ADMITTED: u64 = 25;
/// Minimum time between admissions by fully served polls.
const ADMISSION_INTERVAL: Duration = Duration::from_millis(100);
/// Maximum time until a worker with free capacity polls again.
const MAX_POLL_INTERVAL: Micros = Micros::from_millis(1_000);

fn behind_two_keys(count: usize) -> impl Iterator<Item = NewTask> {
    (0..count).map(|n| with_key(["a", "b"][n % 2]))
}

/// Tasks of a kind that one worker of the check serves.
fn of_kind(name: &'static str, tasks: impl Iterator<Item = NewTask>) -> impl Iterator<Item = NewTask> {
    tasks.map(move |task| NewTask { kind: kind(name), ..task })
}

async fn backlog(queue: &Client) -> u64 {
    queue.counted(Counted::Now(State::Added)).await + queue.counted(Counted::Now(State::Scheduled)).await
}

async fn busy(queue: &Client) -> Worker {
    queue.add(of_kind("long", std::iter::once(task()))).await;
    let mut worker = queue.worker_of(&["long"]);
    worker.one().await;
    worker
}

/// Polls with capacity for one task until the backlog is admitted. Returns the waits that replies
/// demanded.
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
            assert!(next <= MAX_POLL_INTERVAL, "{next:?}");
            queue.pass(next.to_duration()).await;
            passed = passed + next;
        }
    }
    panic!("{} tasks are left", backlog(queue).await)
}

/// Fully served polls, even many in a row, admit few tasks.
async fn is_bounded(queue: Client, worker: &mut Worker) {
    let (before, runs) = (backlog(&queue).await, 5);
    assert!(before > 2 * runs * MAX_ADMITTED, "{before} tasks are too few");
    let ready = queue.add((0..runs).map(|_| NewTask { priority: 1, ..task() })).await;
    // Both the leasing and the completing poll may be due to admit tasks.
    for (steps, id) in (1..).step_by(2).zip(ready) {
        let run = worker.one().await;
        assert_eq!(run.0, id);
        let admitted = before - backlog(&queue).await;
        assert!(admitted <= steps * MAX_ADMITTED, "{steps} steps admit {admitted} tasks");
        worker.end(run, done()).await;
    }
}

/// A backlog of blocked tasks does not delay ready ones.
pub async fn a_backlog_behind_keys_holds_up_no_ready_work(handles: Handles) {
    let (one, other) = usual(handles).await;
    let mut worker = other.worker();
    worker.tidy().await;
    one.add(behind_two_keys(MANY)).await;
    is_bounded(one, &mut worker).await;
}

/// A backlog due at one instant does not delay ready tasks.
pub async fn a_backlog_that_is_due_holds_up_no_ready_work(handles: Handles) {
    let (one, other) = usual(handles).await;
    let mut worker = other.worker();
    worker.tidy().await;
    let at = When::At(one.overview().await.at + seconds(100));
    one.add((0..MANY).map(|_| NewTask { not_before: at, ..task() })).await;
    one.pass(Duration::from_secs(100)).await;
    is_bounded(one, &mut worker).await;
}

/// However many polls come, tasks are admitted once per `ADMISSION_INTERVAL`, due and added ones equally.
pub async fn a_backlog_is_admitted_beside_ready_work(handles: Handles) {
    let (one, other) = usual(handles).await;
    let mut worker = other.worker();
    worker.tidy().await;
    let at = When::At(one.overview().await.at + seconds(100));
    one.add((0..MANY).map(|_| NewTask { not_before: at, ..task() })).await;
    one.pass(Duration::from_secs(100)).await;
    one.add(behind_two_keys(MANY)).await;
    let sweeps = 2 * MANY as u64 / MAX_ADMITTED;
    one.add((0..2 * sweeps + 2).map(|_| NewTask { priority: 1, ..task() })).await;
    let mut admitted = 0;
    for n in 1..=sweeps {
        one.pass(ADMISSION_INTERVAL).await;
        // Too soon to admit tasks again.
        worker.run().await;
        worker.run().await;
        let scheduled = MANY as u64 - one.counted(Counted::Now(State::Scheduled)).await;
        let added = MANY as u64 - one.counted(Counted::Now(State::Added)).await;
        assert!(scheduled + added - admitted <= MAX_ADMITTED, "sweep {n} admits {scheduled} and {added}");
        assert!(scheduled.abs_diff(added) <= n, "{scheduled} due ones and {added} added ones");
        admitted = scheduled + added;
    }
    assert_eq!(admitted, 2 * MANY as u64);
}

/// An urgent task is admitted before a backlog, and leased.
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
    let behind_a_key = one.add_one(NewTask { priority: 3, ..with_key("c") }).await;
    assert_eq!([worker.run().await, worker.run().await], [ready, behind_a_key]);
}

/// While no task runs, workers of other kinds admit the backlog without waits.
pub async fn a_backlog_is_admitted_without_its_workers(handles: Handles) {
    let (one, other) = usual(handles).await;
    let mut stranger = other.worker_of(&["other"]);
    stranger.tidy().await;
    one.add(behind_two_keys(MANY)).await;
    assert_eq!(admit_all(&one, &mut stranger).await, Micros::ZERO);
}

/// While tasks run, workers of other kinds admit the backlog slowly, one at a time.
pub async fn a_worker_of_another_kind_admits_a_backlog_slowly(handles: Handles) {
    let (one, other) = usual(handles).await;
    let mut busy = busy(&one).await;
    let mut strangers = [other.worker_of(&["other"]), other.worker_of(&["other"])];
    for stranger in &mut strangers {
        stranger.tidy().await;
    }
    one.add(behind_two_keys(MANY)).await;
    for _ in 0..5 {
        one.pass(ADMISSION_INTERVAL).await;
        let before = backlog(&one).await;
        let mut nexts = Vec::new();
        for stranger in &mut strangers {
            let step = Step { want: 1, ..stranger.step() };
            let stepped = stranger.send(step).await;
            assert!(!stepped.more, "it would come again at once");
            nexts.push(stepped.next);
        }
        assert_eq!(before - backlog(&one).await, MAX_ADMITTED);
        assert_eq!(nexts, [Some(Micros::from_duration(ADMISSION_INTERVAL)), Some(MAX_POLL_INTERVAL)]);
    }
    admit_all(&one, &mut strangers[0]).await;
    busy.beat().await;
}

/// A worker of the same kind admits the whole backlog despite blocked tasks. Takes ten seconds on a
/// store that flushes each command: it sends hundreds.
pub async fn a_worker_with_room_admits_a_backlog_in_the_end(handles: Handles) {
    let (one, other) = usual(handles).await;
    let mut busy = busy(&one).await;
    let mut worker = other.worker();
    one.add(behind_two_keys(MANY)).await;
    admit_all(&one, &mut worker).await;
    busy.beat().await;
    assert_eq!(one.counted(Counted::Now(State::Added)).await, 0);
}
