//! Waits and durations of tasks, and how many ended tasks are kept.

use std::time::Duration;

use interval_queue_contract::Micros;
use interval_queue_task_contract::{
    Keep, NewTask, OnFailure, Outcome, Read, Reply, SettingsChange, State, Times, Verb,
};

use crate::client::{Client, Handles, attempts, behind, done, in_seconds, kind, opened, task, usual};

async fn times(client: &Client, of: &str, from: Micros) -> Vec<Times> {
    match client.read(Read::Times { kind: kind(of), from }).await {
        Reply::Times(times) => times,
        other => panic!("a read of times shows {other:?}"),
    }
}

/// The non-empty cells of a histogram and their counts.
fn lengths(counts: &[u64]) -> Vec<(usize, u64)> {
    counts.iter().copied().enumerate().filter(|&(_, count)| count > 0).collect()
}

/// Each run is counted by its wait, from the earliest start, and by its duration. A released task
/// has only a wait.
pub async fn times_are_counted_by_kind_and_hour(handles: Handles) {
    let (one, other) = usual(handles).await;
    let far = |text| NewTask { kind: kind(text), policy: attempts(1), ..task() };
    one.add([task(), far("ä"), NewTask { not_before: in_seconds(3), ..far("ä") }]).await;
    let mut worker = other.worker_of(&["ä", "default"]);
    one.pass(Duration::from_millis(700)).await;
    let runs = worker.lease(3).await;
    assert_eq!(runs.len(), 2);
    one.pass(Duration::from_millis(1_500)).await;
    for leased in runs {
        let outcome = if leased.task.kind == kind("ä") { Outcome::Error("no".into()) } else { done() };
        worker.end((leased.task.id, leased.task.token), outcome).await;
    }
    one.pass(Duration::from_secs(1)).await;
    let run = worker.one().await;
    worker.end(run, Outcome::Released).await;
    let of_default = times(&other, "default", Micros::ZERO).await;
    let [hour] = of_default.as_slice() else { panic!("{of_default:?}") };
    // A wait of 700 ms and a run of 1,500 ms.
    assert_eq!(lengths(&hour.wait.counts), [(10, 1)]);
    assert_eq!(lengths(&hour.run.counts), [(11, 1)]);
    assert_eq!((hour.wait.total.get() / 1_000_000, hour.run.total.get() / 1_000_000), (0, 1));
    let of_other = times(&one, "ä", hour.hour).await;
    let [of_other] = of_other.as_slice() else { panic!("{of_other:?}") };
    // Waits of 700 ms, and of 200 ms after the earliest start.
    assert_eq!(lengths(&of_other.wait.counts), [(8, 1), (10, 1)]);
    assert_eq!(lengths(&of_other.run.counts), [(11, 1)]);
    assert_eq!(times(&one, "nobody", Micros::ZERO).await, []);
}

/// Histograms are per hour and kept for a week.
pub async fn times_are_kept_for_a_week(handles: Handles) {
    let (one, other) = usual(handles).await;
    let mut worker = other.worker();
    let day = Duration::from_secs(86_400);
    let mut seen = Vec::new();
    for _ in 0..9 {
        one.add([task(), task()]).await;
        worker.run().await;
        worker.run().await;
        let all = times(&one, "default", Micros::ZERO).await;
        assert!(all.iter().all(|times| times.wait.number() == 2 && times.run.number() == 2), "{all:?}");
        seen.push(all.len());
        one.clock().advance(day);
        worker.hello().await;
    }
    assert_eq!(seen, [1, 2, 3, 4, 5, 6, 7, 8, 8]);
    let all = times(&one, "default", Micros::ZERO).await;
    let last = all.last().unwrap().hour;
    assert_eq!(times(&one, "default", last).await.len(), 1);
    assert_eq!(times(&one, "default", last + Micros::from_millis(3_600_000)).await, []);
}

/// The latest ended tasks are kept up to the maximum; all for 20 minutes, and while a downstream
/// needs them.
pub async fn as_many_ended_tasks_are_kept_as_said(handles: Handles) {
    let keep = Keep { most_done: Some(2), most_cancelled: Some(0), ..Keep::default() };
    let (one, other) =
        opened(handles, SettingsChange { keep: Some(keep), ..SettingsChange::default() }).await;
    let ids = one.add((0..7).map(|_| NewTask { policy: attempts(1), ..task() })).await;
    let down = behind([ids[0]], OnFailure::Run);
    let down = one.add_one(NewTask { not_before: in_seconds(100_000), ..down }).await;
    let mut worker = other.worker();
    for (n, leased) in worker.lease(6).await.into_iter().enumerate() {
        let outcome = if n == 5 { Outcome::Error("no".into()) } else { done() };
        one.pass(Duration::from_millis(200)).await;
        worker.end((leased.task.id, leased.task.token), outcome).await;
    }
    one.touch(Verb::Cancel, [ids[6]]).await;
    one.live(&mut worker, Duration::from_secs(1_190)).await;
    worker.tidy().await;
    assert_eq!(one.rows().await.len(), 8, "an id is kept for 20 minutes");
    for _ in 0..2 {
        one.live(&mut worker, Duration::from_secs(30)).await;
        worker.tidy().await;
    }
    let mut left: Vec<_> = one.rows().await.into_iter().map(|x| (x.id, x.state)).collect();
    left.sort();
    let mut expected =
        vec![(ids[0], State::Done), (ids[4], State::Done), (ids[5], State::Failed), (down, State::Scheduled)];
    expected.sort();
    assert_eq!(left, expected);
}
