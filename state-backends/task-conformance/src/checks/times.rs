//! Waits and durations of tasks, and how many ended tasks are kept.

use std::time::Duration;

use interval_queue_contract::Micros;
use interval_queue_task_contract::{
    Day, Keep, NewTask, OnFailure, Outcome, Read, Reply, SettingsChange, State, Throughput, Times, Verb,
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

/// Events are counted by hour, for a week, and by day, for 400 days.
pub async fn events_are_counted_by_hour_and_day(handles: Handles) {
    let (one, other) = usual(handles).await;
    let days = async || match one.read(Read::Days { kind: kind("default"), from: Micros::ZERO }).await {
        Reply::Days(days) => days,
        other => panic!("a read of days shows {other:?}"),
    };
    let mut worker = other.worker();
    let hour = Duration::from_secs(3_600);
    // Three hours of one day: 11,000 days are a midnight.
    let now = one.clock().now();
    let begin = Micros::new(now.get() / DAY * DAY + DAY);
    one.clock().advance((begin - now).to_duration());
    for _ in 0..3 {
        let ids = one.add([task(), task(), task()]).await;
        worker.hello().await;
        let runs = worker.lease(2).await;
        let held: Vec<_> = runs.iter().map(|leased| (leased.task.id, leased.task.token)).collect();
        worker.end(held[0], done()).await;
        worker.end(held[1], Outcome::Failed("no".into())).await;
        let third = ids.into_iter().find(|id| held.iter().all(|(held, _)| held != id)).unwrap();
        let run = worker.one().await;
        assert_eq!(run.0, third);
        worker.end(run, Outcome::Retry(Micros::from_millis(90_000_000), "later".into())).await;
        one.touch(Verb::Cancel, [third]).await;
        one.clock().advance(hour);
    }
    let each = Throughput { added: 3, done: 1, failed: 1, cancelled: 1, retried: 1 };
    let mut all = each;
    all += &each;
    all += &each;
    assert_eq!(days().await, [Day { day: begin, throughput: all }]);
    let hours = times(&one, "default", Micros::ZERO).await;
    assert_eq!(hours.iter().map(|times| times.throughput).collect::<Vec<_>>(), [each; 3]);
    // The hours expire one by one, and the day stays the same.
    for expired in 0..=4 {
        let passed = if expired == 0 { hour * (7 * 24 - 3) } else { hour };
        one.clock().advance(passed);
        worker.hello().await;
        assert_eq!(days().await, [Day { day: begin, throughput: all }], "{expired}");
    }
    assert_eq!(times(&one, "default", Micros::ZERO).await, []);
    one.add_one(task()).await;
    one.clock().advance(hour * 24 * 390);
    worker.hello().await;
    assert_eq!(days().await.len(), 2);
    one.clock().advance(hour * 24 * 5);
    worker.hello().await;
    let left = days().await;
    assert_eq!(left.len(), 1, "{left:?}");
    assert_eq!(left[0].throughput.added, 1);
}

const DAY: u64 = 86_400_000_000;

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
