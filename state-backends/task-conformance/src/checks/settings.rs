//! What is stored with a queue.

use interval_queue_contract::{MaxRunning, Micros, OnExisting, StateErrorKind};
use interval_queue_task_contract::{Change, Command, Keep, Policy, Read, Reply, Settings, SettingsChange};

use crate::client::{Handles, keyed, kind, refusal, task, unopened, usual};

/// Settings are stored as given, seen by all, and one that is not given stays.
pub async fn settings_are_seen_by_all(handles: Handles) {
    let (one, other) = unopened(handles);
    let policy = Policy {
        max_attempts: 1_000_000,
        max_retries: 0,
        backoff: Micros::new(1),
        max_backoff: Micros::from_millis(10 * 366 * 24 * 3_600_000),
        timeout: Some(Micros::new(3)),
    };
    let change = SettingsChange {
        max_running: MaxRunning::AtMost(u32::MAX),
        key_limit: Some(u32::MAX),
        ageing: Some(Micros::ZERO),
        keep: Some(Keep {
            done: Micros::new(1),
            failed: Micros::new(2),
            cancelled: Micros::new(3),
            most_failed: Some(7),
            ..Keep::default()
        }),
        max_payload: Some(4 << 20),
        policy: Some(policy),
    };
    one.change(Change::Open(change.clone(), OnExisting::Fail)).await;
    let wanted = change.on(&Settings::default());
    assert_eq!(other.overview().await.settings, wanted);
    other.change(Change::Open(SettingsChange::default(), OnExisting::Fail)).await;
    let less = SettingsChange { key_limit: Some(2), ..SettingsChange::default() };
    let outcome = other.apply(Command::Change(Change::Open(less.clone(), OnExisting::Fail))).await;
    assert_eq!(refusal(outcome), StateErrorKind::Conflict);
    other.change(Change::Open(less.clone(), OnExisting::Keep)).await;
    assert_eq!(one.overview().await.settings, wanted);
    other.change(Change::Set(less)).await;
    assert_eq!(one.overview().await.settings, Settings { key_limit: 2, ..wanted });
}

/// A paused queue leases nothing, what runs goes on, and it goes on when it is resumed.
pub async fn a_paused_queue_leases_nothing(handles: Handles) {
    let (one, other) = usual(handles).await;
    one.add([task(), keyed("k")]).await;
    let mut worker = other.worker();
    let run = worker.one().await;
    one.change(Change::Pause).await;
    assert!(other.overview().await.paused);
    worker.end(run, crate::client::done()).await;
    assert_eq!(worker.take(9).await, []);
    assert_eq!(one.read(Read::Ready(vec![kind("default")])).await, Reply::Ready(false));
    one.change(Change::Resume).await;
    assert_eq!(one.read(Read::Ready(vec![kind("default")])).await, Reply::Ready(true));
    assert_eq!(worker.take(9).await.len(), 1);
    assert_eq!(one.read(Read::Ready(vec![kind("default")])).await, Reply::Ready(false));
}

/// Commands that break a bound are refused, and change nothing.
pub async fn an_invalid_command_changes_nothing(handles: Handles) {
    use interval_queue_task_contract::{Add, Fire, Follow, NewTask, Step};
    let (one, other) = usual(handles).await;
    one.add_one(task()).await;
    let mut worker = one.worker();
    worker.beat().await;
    let before = (other.rows().await, other.overview().await.settings);
    let set = |change| Command::Change(Change::Set(change));
    let add = |new| Command::Add(Add { tasks: vec![task(), new], age: Micros::ZERO });
    let usual = SettingsChange::default;
    let at = Micros::new(5);
    let commands = [
        set(SettingsChange { key_limit: Some(0), ..usual() }),
        set(SettingsChange { max_running: MaxRunning::AtMost(0), ..usual() }),
        set(SettingsChange { max_payload: Some(0), ..usual() }),
        add(NewTask { priority: 101, ..task() }),
        add(NewTask { weight: 0, ..task() }),
        add(NewTask { ordered: true, ..task() }),
        Command::Step(Step { lease: Micros::ZERO, want: 9, ..worker.step() }),
        Command::Step(Step { want: 10_001, ..worker.step() }),
        Command::Fire(Fire {
            schedule: crate::client::key("s"),
            revision: 1,
            from: at,
            made: vec![],
            next: Some(at),
        }),
        Command::Read(Read::Page { selector: Default::default(), after: None, limit: 0, bodies: false }),
        Command::Follow(Follow { after: None, most: 0 }),
        Command::Read(Read::Line(0)),
        Command::Read(Read::Line(1_001)),
    ];
    for command in commands {
        let outcome = other.apply(command.clone()).await;
        assert_eq!(refusal(outcome), StateErrorKind::Invalid, "{command:?}");
    }
    assert_eq!((one.rows().await, one.overview().await.settings), before);
}
