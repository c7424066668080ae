//! Keys: how many tasks of a key run at a time, and which.

use std::time::Duration;

use interval_queue_contract::MaxRunning;
use interval_queue_task_contract::{Change, NewTask, Outcome, SettingsChange, State, Verb, Why};

use crate::client::{Handles, attempts, done, key, kind, opened, task, usual, with_key};

/// One task of a key runs at a time. The command that ends it admits the next.
pub async fn a_key_runs_one_task_at_a_time(handles: Handles) {
    let (one, other) = usual(handles).await;
    let ids = one.add([with_key("k"), with_key("k"), with_key("k"), with_key("other"), task()]).await;
    let mut worker = other.worker();
    let leased = worker.lease(9).await;
    let got: Vec<_> = leased.iter().map(|leased| leased.task.id).collect();
    assert_eq!(got, [ids[0], ids[3], ids[4]]);
    assert_eq!(one.states(&ids[1..3]).await, [State::Blocked; 2]);
    // The step requests no task, but passes the permit on.
    worker.end((ids[0], leased[0].task.token), done()).await;
    assert_eq!(one.states(&ids[..3]).await, [State::Done, State::Ready, State::Blocked]);
    assert_eq!(one.touch(Verb::Cancel, [ids[1]]).await, [ids[1]]);
    assert_eq!(one.states(&ids[1..3]).await, [State::Cancelled, State::Ready]);
}

/// The key's limit, or the queue's, bounds running tasks.
pub async fn a_key_runs_as_many_as_it_may(handles: Handles) {
    let settings = SettingsChange { key_limit: Some(2), ..SettingsChange::default() };
    let (one, other) = opened(handles, settings).await;
    one.change(Change::Key(key("three"), Some(3))).await;
    one.add((0..5).map(|_| with_key("two"))).await;
    one.add((0..5).map(|_| with_key("three"))).await;
    let mut worker = other.worker();
    assert_eq!(worker.take(9).await.len(), 5);
    assert_eq!(other.worker().take(9).await.len(), 0);
}

/// A later, more urgent task takes the permit of one that has not started.
pub async fn a_more_urgent_task_takes_the_place(handles: Handles) {
    let (one, other) = usual(handles).await;
    let mut worker = other.worker();
    let mild = one.add_one(with_key("k")).await;
    worker.tidy().await;
    assert_eq!(one.state(mild).await, State::Ready);
    let urgent = one.add_one(NewTask { priority: 1, ..with_key("k") }).await;
    worker.tidy().await;
    assert_eq!(one.states(&[mild, urgent]).await, [State::Blocked, State::Ready]);
    assert_eq!(worker.take(9).await, [urgent]);
    let most = one.add_one(NewTask { priority: 2, ..with_key("k") }).await;
    worker.tidy().await;
    assert_eq!(one.states(&[mild, urgent, most]).await, [State::Blocked, State::Leased, State::Blocked]);
    assert_eq!(one.stored(mild).await.why, Some(Why::Key(Some(most))));
}

/// Ordered tasks of a key run in the order of adding, across retries, priorities and limits.
pub async fn ordered_tasks_run_in_the_order_of_adding(handles: Handles) {
    let settings = SettingsChange { key_limit: Some(2), ..SettingsChange::default() };
    let (one, other) = opened(handles, settings).await;
    let ordered = |priority| NewTask { ordered: true, priority, policy: attempts(2), ..with_key("k") };
    let ids = one.add([ordered(0), ordered(5), ordered(9)]).await;
    let mut worker = other.worker();
    let run = worker.one().await;
    assert_eq!(run.0, ids[0]);
    assert_eq!(worker.take(9).await, []);
    worker.end(run, Outcome::Error("again".into())).await;
    assert_eq!(worker.take(9).await, [], "the key is held while one waits for its retry");
    assert_eq!(one.state(ids[0]).await, State::Scheduled);
    one.pass(Duration::from_secs(1)).await;
    for id in ids {
        assert_eq!(worker.run().await, id);
    }
}

/// An ordered task is the only running one of its key.
pub async fn an_ordered_task_runs_alone(handles: Handles) {
    let settings = SettingsChange { key_limit: Some(2), ..SettingsChange::default() };
    let (one, other) = opened(handles, settings).await;
    let ordered = || NewTask { ordered: true, ..with_key("k") };
    let mut worker = other.worker();
    one.add_one(ordered()).await;
    let run = worker.one().await;
    let later = one.add_one(with_key("k")).await;
    assert_eq!(worker.take(9).await, [], "an ordered one runs");
    worker.end(run, done()).await;
    let run = worker.one().await;
    assert_eq!(run.0, later);
    let last = one.add_one(ordered()).await;
    assert_eq!(worker.take(9).await, [], "another one runs");
    worker.end(run, done()).await;
    assert_eq!(worker.take(9).await, [last]);
}

/// Of many ready tasks of a key the least urgent one gives way to a more urgent one.
pub async fn the_least_urgent_of_many_gives_way(handles: Handles) {
    const MANY: u32 = 80;
    let settings = SettingsChange { key_limit: Some(MANY), ..SettingsChange::default() };
    let (one, other) = opened(handles, settings).await;
    let urgent = |priority| NewTask { priority, ..with_key("k") };
    let ids = one.add((0..MANY).map(|n| urgent(10 + (n * 7 % MANY) as i32))).await;
    let mut worker = other.worker();
    worker.tidy().await;
    assert_eq!(one.states(&ids).await, [State::Ready; MANY as usize]);
    let most_urgent = one.add_one(urgent(100)).await;
    worker.tidy().await;
    let states = one.states(&ids).await;
    let blocked: Vec<usize> = (0..ids.len()).filter(|&n| states[n] != State::Ready).collect();
    assert_eq!((blocked, one.state(most_urgent).await), (vec![0], State::Ready));
}

/// A paused key starts nothing and blocks no other task; running tasks continue. A raised limit
/// applies at once.
pub async fn a_key_is_paused_and_its_limit_changed(handles: Handles) {
    let (one, other) = usual(handles).await;
    let ids = one.add((0..4).map(|_| with_key("k"))).await;
    let mut worker = other.worker();
    let run = worker.one().await;
    one.change(Change::Key(key("k"), Some(0))).await;
    worker.end(run, done()).await;
    assert_eq!(worker.take(9).await, []);
    assert_eq!(one.state(ids[1]).await, State::Blocked);
    assert_eq!(one.stored(ids[1]).await.why, Some(Why::KeyPaused));
    one.change(Change::Key(key("k"), None)).await;
    assert_eq!(worker.take(9).await, [ids[1]]);
    one.change(Change::Set(SettingsChange { key_limit: Some(3), ..SettingsChange::default() })).await;
    assert_eq!(worker.take(9).await, ids[2..]);
    // The limit is lowered: running tasks continue, and none starts above it.
    one.change(Change::Set(SettingsChange { key_limit: Some(1), ..SettingsChange::default() })).await;
    let later = one.add_one(with_key("k")).await;
    for &id in &ids[1..] {
        assert_eq!(worker.take(9).await, []);
        worker.end((id, one.row(id).await.token), done()).await;
    }
    assert_eq!(worker.take(9).await, [later]);
}

/// Tasks of a paused or unserved kind do not hold their key.
pub async fn a_closed_kind_holds_no_key(handles: Handles) {
    let (one, other) = usual(handles).await;
    let of = |name: &str| NewTask { kind: kind(name), ..with_key("k") };
    let ids = one.add([of("nobody"), of("paused"), of("open")]).await;
    let mut worker = other.worker_of(&["open", "paused"]);
    worker.tidy().await;
    assert_eq!(one.states(&ids).await, [State::Blocked, State::Ready, State::Blocked]);
    one.change(Change::Kind(kind("paused"), true)).await;
    assert_eq!(worker.take(9).await, [ids[2]]);
    assert_eq!(one.stored(ids[0]).await.why, Some(Why::Unserved));
    assert_eq!(one.stored(ids[1]).await.why, Some(Why::KindPaused));
    worker.end((ids[2], one.row(ids[2]).await.token), done()).await;
    one.change(Change::Kind(kind("paused"), false)).await;
    assert_eq!(worker.take(9).await, [ids[1]]);
    worker.end((ids[1], one.row(ids[1]).await.token), done()).await;
    assert_eq!(other.worker_of(&["nobody"]).take(9).await, [ids[0]]);
}

/// However many tasks of an unserved kind are before another one in the line of a key.
pub async fn many_tasks_of_a_closed_kind_hold_no_key(handles: Handles) {
    let (one, other) = usual(handles).await;
    let of = |name: &str| NewTask { kind: kind(name), ..with_key("k") };
    one.add((0..80).map(|_| of("nobody"))).await;
    let mut worker = other.worker_of(&["open"]);
    worker.tidy().await;
    // The line is known by now, and all that is in it is unserved.
    let ids = one.add([of("open"), of("open")]).await;
    for id in ids {
        assert_eq!(worker.run().await, id);
    }
}

/// An ordered task does not hold its key if its kind is paused before its retry.
pub async fn a_closed_kind_gives_up_its_key_after_a_retry(handles: Handles) {
    let (one, other) = usual(handles).await;
    let of = |name: &str| NewTask { kind: kind(name), ordered: true, policy: attempts(2), ..with_key("k") };
    let ids = one.add([of("paused"), of("open")]).await;
    let mut worker = other.worker_of(&["open", "paused"]);
    let run = worker.one().await;
    worker.end(run, Outcome::Error("again".into())).await;
    one.change(Change::Kind(kind("paused"), true)).await;
    worker.tidy().await;
    one.pass(Duration::from_secs(2)).await;
    assert_eq!(worker.take(9).await, [ids[1]]);
}

/// `max_running` holds for all workers together, and freed permits are used.
pub async fn a_limit_holds_for_all_workers(handles: Handles) {
    let settings = SettingsChange { max_running: MaxRunning::AtMost(3), ..SettingsChange::default() };
    let (one, other) = opened(handles, settings).await;
    one.add((0..9).map(|_| task())).await;
    let (mut first, mut second) = (one.worker(), other.worker());
    let run = first.one().await;
    assert_eq!(second.take(9).await.len(), 2);
    assert_eq!(first.take(9).await.len(), 0);
    first.end(run, done()).await;
    assert_eq!(second.take(9).await.len(), 1);
    one.change(Change::Set(SettingsChange {
        max_running: MaxRunning::Unlimited,
        ..SettingsChange::default()
    }))
    .await;
    assert_eq!(first.take(9).await.len(), 5);
}
