//! The settings of a queue.

use interval_queue_contract::{MaxRunning, Micros, OnExisting, StateErrorKind};
use interval_queue_task_contract::{
    Change, Command, Keep, Order, Overview, Policy, Read, Reply, Selector, Settings, SettingsChange, Verb,
};

use crate::client::{Handles, key, kind, refusal, task, touch, unopened, usual, with_key};

/// Settings are stored as given, visible to all; unset ones stay.
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
    let expected = change.on(&Settings::default());
    assert_eq!(other.overview().await.settings, expected);
    other.change(Change::Open(SettingsChange::default(), OnExisting::Fail)).await;
    let less = SettingsChange { key_limit: Some(2), ..SettingsChange::default() };
    let outcome = other.apply(Command::Change(Change::Open(less.clone(), OnExisting::Fail))).await;
    assert_eq!(refusal(outcome), StateErrorKind::Conflict);
    other.change(Change::Open(less.clone(), OnExisting::Keep)).await;
    assert_eq!(one.overview().await.settings, expected);
    other.change(Change::Set(less)).await;
    assert_eq!(one.overview().await.settings, Settings { key_limit: 2, ..expected });
}

/// A paused queue leases nothing until it is resumed; running tasks continue.
pub async fn a_paused_queue_leases_nothing(handles: Handles) {
    let (one, other) = usual(handles).await;
    one.add([task(), with_key("k")]).await;
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

/// Commands that exceed a bound are rejected and change nothing.
pub async fn an_invalid_command_changes_nothing(handles: Handles) {
    use interval_queue_task_contract::{Add, Fire, Follow, NewTask, Step};
    let (one, other) = usual(handles).await;
    one.add_one(task()).await;
    let mut worker = one.worker();
    worker.beat().await;
    let before = (other.rows().await, other.overview().await.settings);
    let set = |change| Command::Change(Change::Set(change));
    let add = |new| Command::Add(Add { tasks: [task(), new].into(), sequence: 0, age: Micros::ZERO });
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
        Command::Read(Read::Page {
            selector: Default::default(),
            after: Order::Oldest.start(),
            limit: 0,
            bodies: false,
        }),
        Command::Follow(Follow { after: None, most: 0 }),
        Command::Read(Read::Upcoming(0)),
        Command::Read(Read::Upcoming(1_001)),
    ];
    for command in commands {
        let outcome = other.apply(command.clone()).await;
        assert_eq!(refusal(outcome), StateErrorKind::Invalid, "{command:?}");
    }
    assert_eq!((one.rows().await, one.overview().await.settings), before);
}

/// Settings and pauses create the queue before its first task. Resuming and changing tasks need
/// one.
pub async fn a_setting_creates_the_queue(handles: Handles) {
    let less = SettingsChange { key_limit: Some(2), ..SettingsChange::default() };
    let creating = [
        Change::Set(less.clone()),
        Change::Pause,
        Change::Kind(kind("default"), true),
        Change::Key(key("k"), Some(0)),
    ];
    for change in creating {
        let (one, other) = unopened(handles.clone());
        one.change(change.clone()).await;
        let overview = other.overview().await;
        let expected = match change {
            Change::Set(_) => less.on(&Settings::default()),
            _ => Settings::default(),
        };
        assert_eq!(overview.settings, expected, "{change:?}");
        assert_eq!(overview.paused, change == Change::Pause);
        other.add_one(with_key("k")).await;
        let leased = one.worker().take(1).await;
        assert_eq!(leased.len(), usize::from(matches!(change, Change::Set(_))), "{change:?}");
    }
    let needing = [
        Change::Resume,
        Change::Kind(kind("default"), false),
        Change::Key(key("k"), None),
        Change::Tasks(touch(Verb::Cancel, Selector::default())),
        Change::Unschedule(key("s")),
    ];
    let (one, _) = unopened(handles);
    for change in needing {
        assert_eq!(refusal(one.apply(Command::Change(change)).await), StateErrorKind::NotFound);
    }
    assert_eq!(refusal(one.apply(Command::Read(Read::Clock)).await), StateErrorKind::NotFound);
}

/// Pauses are listed with their waiting tasks and start; repeats change nothing.
pub async fn pauses_are_listed(handles: Handles) {
    let (one, other) = usual(handles).await;
    one.add([with_key("b"), with_key("b"), with_key("a"), with_key("c")]).await;
    one.worker().tidy().await;
    let Reply::Clock(before) = one.read(Read::Clock).await else { panic!("the clock is another reply") };
    for name in ["b", "a"] {
        one.change(Change::Key(key(name), Some(0))).await;
    }
    one.change(Change::Key(key("c"), Some(3))).await;
    one.change(Change::Kind(kind("other"), true)).await;
    one.change(Change::Pause).await;
    one.worker().tidy().await;
    let overview = other.overview().await;
    let listed: Vec<_> =
        overview.paused_keys.iter().map(|paused| (paused.key.as_str(), paused.tasks)).collect();
    assert_eq!(listed, [("a", 1), ("b", 2)]);
    let paused_kind = overview.kinds.iter().find(|row| row.paused).unwrap();
    let since = [overview.paused_at, paused_kind.paused_at, overview.paused_keys[1].since];
    assert!(since.iter().all(|since| since.is_some_and(|at| at >= before && at <= overview.at)), "{since:?}");
    one.pass(std::time::Duration::from_millis(2)).await;
    other.change(Change::Key(key("b"), Some(0))).await;
    other.change(Change::Kind(kind("other"), true)).await;
    other.change(Change::Pause).await;
    let again = one.overview().await;
    assert_eq!(again.paused_keys, overview.paused_keys);
    let since = |overview: &Overview| overview.kinds.iter().map(|row| row.paused_at).collect::<Vec<_>>();
    assert_eq!((again.paused_at, since(&again)), (overview.paused_at, since(&overview)));
    other.change(Change::Key(key("b"), None)).await;
    other.change(Change::Kind(kind("other"), false)).await;
    other.change(Change::Resume).await;
    let resumed = one.overview().await;
    assert_eq!(resumed.paused_keys, overview.paused_keys[..1]);
    assert_eq!(resumed.paused_at, None);
    assert!(resumed.kinds.iter().all(|row| !row.paused && row.paused_at.is_none()));
}
