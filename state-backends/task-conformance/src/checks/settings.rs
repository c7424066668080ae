//! The settings of a queue.

use interval_queue_contract::{MaxRunning, Micros, OnExisting, StateErrorKind};
use interval_queue_task_contract::{
    Change, Command, Keep, MAX_KIND_POLICIES, NewTask, Order, Outcome, Overview, Policy, PolicyOverride,
    Read, Reply, Selector, Settings, SettingsChange, State, Verb,
};

use crate::client::{
    Handles, attempts, key, kind, opened, refusal, seconds, task, touch, unopened, usual, with_key,
};

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
        kinds: [(kind("1"), attempts(7)), (kind("größer"), policy.into())].into(),
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

/// Tasks take parts of the policy from their kind, and all others from the queue.
pub async fn a_policy_of_a_kind_applies_to_its_tasks(handles: Handles) {
    let queue = Policy { max_retries: 3, timeout: Some(seconds(9)), ..Policy::default() };
    let of_kind = PolicyOverride {
        max_attempts: Some(1),
        max_retries: Some(0),
        backoff: Some(seconds(7_200)),
        ..PolicyOverride::default()
    };
    let kinds = [(kind("mail"), of_kind), (kind("other"), attempts(9))].into();
    let settings = SettingsChange { policy: Some(queue), kinds, ..SettingsChange::default() };
    let (one, other) = opened(handles, settings).await;
    let mail = |own| NewTask { kind: kind("mail"), policy: own, ..task() };
    let own = PolicyOverride::default();
    let twice = own.max_attempts(2);
    let ids = one.add([task(), mail(own), mail(twice), mail(twice)]).await;
    let mut worker = other.worker_of(&["default", "mail"]);
    let leased = worker.lease(4).await;
    let policy_of = |id| leased.iter().find(|run| run.task.id == id).unwrap().policy;
    let mails = Policy { max_retries: 0, backoff: seconds(7_200), max_backoff: seconds(7_200), ..queue };
    let expected = [1, 2, 2].map(|max_attempts| Policy { max_attempts, ..mails });
    assert_eq!([policy_of(ids[1]), policy_of(ids[2]), policy_of(ids[3])], expected);
    assert_eq!(policy_of(ids[0]), queue);
    let at = one.overview().await.at;
    for run in &leased {
        let outcome = match run.task.id == ids[3] {
            true => Outcome::Retry(seconds(1), "later".into()),
            false => Outcome::Error("no".into()),
        };
        worker.end((run.task.id, run.task.token), outcome).await;
    }
    let states = [State::Scheduled, State::Failed, State::Scheduled, State::Failed];
    assert_eq!(one.states(&ids).await, states);
    let wait = one.row(ids[2]).await.not_before - at;
    assert!(wait >= seconds(5_000), "{wait:?}");
}

/// A change of the policies of kinds leaves those of other kinds, and applies to stored tasks.
pub async fn policies_of_kinds_change_one_by_one(handles: Handles) {
    let set = |kinds: &[(&str, PolicyOverride)]| SettingsChange {
        kinds: kinds.iter().map(|(name, own)| (kind(name), *own)).collect(),
        ..SettingsChange::default()
    };
    let none = PolicyOverride::default();
    let (one, other) = opened(handles, set(&[("a", attempts(1)), ("b", attempts(2)), ("c", none)])).await;
    let stored = |kinds: &[_]| set(kinds).on(&Settings::default());
    assert_eq!(other.overview().await.settings, stored(&[("a", attempts(1)), ("b", attempts(2))]));
    let task = |name| NewTask { kind: kind(name), ..task() };
    let ids = one.add([task("a"), task("b"), task("c")]).await;
    other.change(Change::Set(set(&[("a", none), ("c", attempts(1)), ("d", none)]))).await;
    assert_eq!(one.overview().await.settings, stored(&[("b", attempts(2)), ("c", attempts(1))]));
    let mut worker = one.worker_of(&["a", "b", "c"]);
    for run in worker.lease(3).await {
        worker.end((run.task.id, run.task.token), Outcome::Error("no".into())).await;
    }
    assert_eq!(one.states(&ids).await, [State::Scheduled, State::Scheduled, State::Failed]);
    let same = set(&[("c", attempts(1)), ("a", none)]);
    one.change(Change::Open(same, OnExisting::Fail)).await;
    let differing = Command::Change(Change::Open(set(&[("c", attempts(2))]), OnExisting::Fail));
    assert_eq!(refusal(one.apply(differing).await), StateErrorKind::Conflict);
    one.change(Change::Set(set(&[("b", none), ("c", none)]))).await;
    assert_eq!(other.overview().await.settings, Settings::default());
}

/// At most 100 kinds of a queue have a policy of their own. Each policy is checked.
pub async fn policies_of_kinds_are_bounded(handles: Handles) {
    let (one, other) = usual(handles).await;
    let of = |numbers: std::ops::Range<usize>, own| SettingsChange {
        kinds: numbers.map(|n| (kind(&format!("k{n}")), own)).collect(),
        ..SettingsChange::default()
    };
    let none = PolicyOverride::default();
    one.change(Change::Set(of(0..MAX_KIND_POLICIES, attempts(2)))).await;
    let full = other.overview().await.settings;
    let more = of(100..101, attempts(2));
    let commands = [
        (Change::Set(more.clone()), "101 kinds"),
        (Change::Open(more.clone(), OnExisting::Replace), "101 kinds"),
        (Change::Set(of(0..101, attempts(2))), "101 kinds"),
        (Change::Set(of(7..8, attempts(0))), "kind \"k7\": max attempts 0"),
    ];
    for (change, named) in commands {
        let error = other.apply(Command::Change(change)).await.unwrap_err();
        assert_eq!(error.kind(), StateErrorKind::Invalid);
        assert!(error.to_string().contains(named), "{error}");
    }
    assert_eq!(one.overview().await.settings, full);
    let mut exchanged = more;
    exchanged.kinds.extend(of(0..1, none).kinds);
    one.change(Change::Set(exchanged)).await;
    one.change(Change::Set(of(7..8, attempts(3)))).await;
    let kinds = other.overview().await.settings.kinds;
    assert_eq!((kinds.len(), kinds.get(&kind("k7"))), (MAX_KIND_POLICIES, Some(&attempts(3))));
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
    use interval_queue_task_contract::{Add, Fire, Follow, Step};
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
