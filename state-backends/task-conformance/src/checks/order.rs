//! The order of leases.

use interval_queue_contract::Micros;
use interval_queue_task_contract::{NewTask, Read, Reply, SettingsChange, State, Step, TaskId, Verb, When};

use crate::client::{Handles, id_of_name, in_seconds, kind, opened, seconds, task, usual};

/// Leases follow `due` across kinds and priorities, then the order of adding. An ageing equals a
/// priority. `Read::Upcoming` agrees.
pub async fn the_most_urgent_task_is_leased_first(handles: Handles) {
    let (one, other) = usual(handles).await;
    let mut batch = Vec::new();
    for n in 0..60 {
        let priority = [0, 3, -2, 100, -100, 1][n % 6];
        batch.push(NewTask { kind: kind(["a", "b", "c"][n % 3]), priority, id: id_of_name(), ..task() });
    }
    let mut expected = Vec::new();
    for id in one.add(batch).await {
        expected.push((one.row(id).await.due, id));
    }
    // A stable sort: ties keep the order of adding.
    expected.sort_by_key(|&(due, _)| due);
    let mut worker = other.worker_of(&["c", "a", "b"]);
    // The poll admits all due tasks.
    worker.beat().await;
    let expected: Vec<TaskId> = expected.into_iter().map(|(_, id)| id).collect();
    let line = async |limit| match one.read(Read::Upcoming(limit)).await {
        Reply::Upcoming(tasks) => tasks.into_iter().map(|task| task.id).collect::<Vec<_>>(),
        other => panic!("{other:?}"),
    };
    assert_eq!(line(7).await, expected[..7]);
    assert_eq!(line(1_000).await, expected);
    let mut taken = Vec::new();
    for want in [1, 2, 30, 27] {
        taken.extend(worker.take(want).await);
        assert_eq!(line(1_000).await, expected[taken.len()..]);
    }
    assert_eq!(taken, expected);
}

/// `due` is the time of adding or the start time, minus an ageing per priority.
pub async fn priority_counts_as_time(handles: Handles) {
    let ageing = Some(seconds(100));
    let (one, other) = opened(handles, SettingsChange { ageing, ..SettingsChange::default() }).await;
    let ids = one
        .add([
            NewTask { priority: 2, ..task() },
            NewTask { priority: -1, ..task() },
            NewTask { not_before: in_seconds(1_000), ..task() },
            NewTask { not_before: When::At(Micros::new(7)), ..task() },
        ])
        .await;
    let mut from = Vec::new();
    for (id, less) in ids.into_iter().zip([200_000_000, -100_000_000, 0, 0]) {
        let x = other.row(id).await;
        from.push((x.added.get().cast_signed() - less, x.due, x.not_before));
    }
    assert_eq!((from[0].0, from[1].0), (from[0].1, from[1].1));
    assert_eq!(
        from[2].1,
        from[2].2.get().cast_signed(),
        "not before the time of adding, but before its time"
    );
    assert_eq!((from[3].0, from[3].2), (from[3].1, Micros::new(7)));
}

/// A worker gets only its kinds, and nothing below its minimum priority.
pub async fn a_worker_gets_what_it_serves(handles: Handles) {
    let (one, other) = usual(handles).await;
    let of = |name: &str, priority| NewTask { kind: kind(name), priority, ..task() };
    let ids = one.add([of("a", 0), of("b", 9), of("c", 9), of("c", 1), of("a", 5)]).await;
    let mut worker = other.worker_of(&["a", "c"]);
    let step = Step { want: 9, at_least: Some(1), ..worker.step() };
    let leased: Vec<_> = worker.send(step).await.leased.iter().map(|leased| leased.task.id).collect();
    assert_eq!(leased, [ids[2], ids[4], ids[3]]);
    assert_eq!(worker.take(9).await, [ids[0]]);
    let overview = one.overview().await;
    assert_eq!(overview.unserved, [kind("b")]);
}

/// A task waits for its time, which replies contain. Released, it runs at once.
pub async fn a_task_waits_for_its_time(handles: Handles) {
    let (one, other) = usual(handles).await;
    let ids = one
        .add([
            NewTask { not_before: in_seconds(60), ..task() },
            NewTask { not_before: in_seconds(90), ..task() },
        ])
        .await;
    let mut worker = other.worker();
    let step = Step { want: 9, ..worker.step() };
    let stepped = worker.send(step).await;
    assert_eq!((stepped.leased.len(), stepped.next.unwrap() <= seconds(60)), (0, true));
    assert_eq!(one.states(&ids).await, [State::Scheduled; 2]);
    assert_eq!(one.touch(Verb::Release, [ids[1]]).await, [ids[1]]);
    assert_eq!(worker.take(9).await, [ids[1]]);
    one.pass(std::time::Duration::from_millis(59_999)).await;
    assert_eq!(worker.take(9).await, []);
    one.pass(std::time::Duration::from_millis(1)).await;
    assert_eq!(worker.take(9).await, [ids[0]]);
}

/// A ready task stays ready when the clock steps back.
pub async fn a_gate_once_passed_stays_passed(handles: Handles) {
    let (one, other) = usual(handles).await;
    let mut worker = other.worker();
    worker.beat().await;
    let first = one.add_one(crate::client::with_key("k")).await;
    let second = one.add_one(NewTask { not_before: in_seconds(10), ..crate::client::with_key("k") }).await;
    one.pass(std::time::Duration::from_secs(20)).await;
    assert_eq!(worker.take(9).await, [first]);
    let third = one.add_one(crate::client::with_key("other")).await;
    one.clock().step_back(std::time::Duration::from_secs(1_000));
    let token = one.row(first).await.token;
    worker.end((first, token), interval_queue_task_contract::Outcome::Released).await;
    assert_eq!(worker.take(9).await, [first, third]);
    let token = one.row(first).await.token;
    worker.end((first, token), crate::client::done()).await;
    assert_eq!(worker.take(9).await, [second]);
}
