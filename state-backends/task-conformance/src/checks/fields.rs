//! Every field of a task is stored unchanged.

use interval_queue_contract::Micros;
use interval_queue_task_contract::{
    Json, Key, Kind, MAX_DELAY, NewTask, OnFailure, Order, Outcome, Policy, PolicyOverride, Progress, Read,
    Reply, Selector, SettingsChange, State, Step, Tag, Traceparent, Unique, Until, When,
};

use crate::client::{Handles, behind, opened, task, usual};

/// Names that are easily confused.
const ODD: [&str; 24] = [
    "a",
    "A",
    "a b",
    "a%b",
    "a_b",
    "a\\b",
    "a'b",
    "a\"b",
    "a:b",
    "a/b",
    "a*",
    "a?",
    "{a}",
    "[a]",
    "$a",
    "null",
    "é",
    "e\u{301}",
    "ß",
    "ss",
    "ключ",
    "日本語",
    "🦀",
    "a\u{200b}",
];

/// A reply has at most about 4 MiB of payloads and names where to continue.
pub async fn a_look_at_too_much_gives_what_fits(handles: Handles) {
    let (one, other) = usual(handles).await;
    let large = Json::new(format!("\"{}\"", "x".repeat(900_000))).unwrap();
    let tasks: Vec<_> = (0..8).map(|_| NewTask { payload: large.clone(), ..task() }).collect();
    let ids: Vec<_> = tasks.iter().map(|task| task.id).collect();
    for task in tasks {
        one.add_one(task).await;
    }
    let Reply::Tasks(found) = other.read(Read::Tasks(ids.clone())).await else { panic!("no tasks") };
    let found: Vec<_> = found.into_iter().map(|stored| stored.expect("it is there").task.id).collect();
    assert_eq!(found, ids[..5], "five are more than 4 MiB");
    let selector = Selector::ids(ids.iter().copied());
    let page = Read::Page { selector, after: Order::Oldest.start(), limit: 100, bodies: true };
    let Reply::Page(page) = other.read(page).await else { panic!("no page") };
    assert_eq!((page.tasks.len(), page.next.map(|next| next.id)), (5, Some(ids[4])));
}

/// All fields of a task are stored unchanged.
pub async fn every_field_is_kept(handles: Handles) {
    let settings = SettingsChange { max_payload: Some(4 << 20), ..SettingsChange::default() };
    let (one, other) = opened(handles, settings).await;
    let tag = |text: &str| Tag::new(text).unwrap();
    let most = Policy {
        max_attempts: 1_000_000,
        max_retries: 1_000_000,
        backoff: MAX_DELAY,
        max_backoff: MAX_DELAY,
        timeout: Some(Micros::MAX),
    };
    let least = Policy {
        max_attempts: 1,
        max_retries: 0,
        backoff: Micros::ZERO,
        max_backoff: Micros::ZERO,
        timeout: None,
    };
    let large = format!("\"{}\"", "ü🦀\\n\\u0000 ".repeat(100_000));
    let full = NewTask {
        kind: Kind::new("k".repeat(200)).unwrap(),
        payload: Json::new(large).unwrap(),
        priority: 100,
        key: Some(Key::new("é".repeat(100)).unwrap()),
        ordered: true,
        unique: Some(Unique { name: Key::new("u".repeat(200)).unwrap(), until: Until::Leased }),
        not_before: When::At(Micros::new(1)),
        deadline: Some(When::At(Micros::MAX)),
        policy: most.into(),
        weight: 1_000,
        tags: ODD.map(tag).into(),
        trace: Some(Traceparent::new("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01").unwrap()),
        ..task()
    };
    let other_end = NewTask {
        payload: Json::new("[1, 1.0, 1e300, -0, 18446744073709551616, {\"a\":1,\"a\":2}]").unwrap(),
        priority: -100,
        not_before: When::After(MAX_DELAY),
        deadline: Some(When::After(MAX_DELAY)),
        policy: PolicyOverride { max_attempts: None, backoff: None, ..least.into() },
        tags: vec![tag("one")],
        ..task()
    };
    let ids = one.add([full.clone(), other_end.clone(), task()]).await;
    for (id, new) in ids.iter().zip([&full, &other_end]) {
        let stored = other.stored(*id).await;
        let x = stored.task;
        assert_eq!(stored.payload.as_ref(), Some(&new.payload));
        assert_eq!(
            (&x.kind, x.priority, &x.key, x.ordered),
            (&new.kind, new.priority, &new.key, new.ordered)
        );
        assert_eq!(
            (&x.unique, x.policy, x.weight, &x.tags, &x.trace),
            (&new.unique, new.policy, new.weight, &new.tags, &new.trace)
        );
        assert!(x.holds_name == new.unique.is_some() && x.generation == 0 && x.history.is_empty());
    }
    let [full, later] = [one.row(ids[0]).await, one.row(ids[1]).await];
    assert_eq!((full.not_before, full.deadline), (Micros::new(1), Some(Micros::MAX)));
    assert_eq!((later.not_before, later.deadline), (later.added + MAX_DELAY, Some(later.added + MAX_DELAY)));
    let plain = one.row(ids[2]).await;
    assert_eq!(
        (plain.not_before, plain.deadline, plain.policy, plain.tags.len()),
        (Micros::ZERO, None, PolicyOverride::default(), 0)
    );
}

/// Odd names are distinct keys, kinds, unique names and edges.
pub async fn odd_names_are_distinct(handles: Handles) {
    let (one, other) = usual(handles).await;
    let name = |text: &str| Key::new(text).unwrap();
    let batch = ODD.map(|text| NewTask {
        kind: Kind::new(text).unwrap(),
        key: Some(name(text)),
        unique: Some(Unique { name: name(text), until: Until::Ended }),
        ..task()
    });
    let ids = one.add(batch).await;
    let mut worker = other.worker_of(&ODD);
    let leased = worker.lease(99).await;
    let mut got: Vec<_> = leased.iter().map(|leased| leased.task.id).collect();
    got.sort();
    assert_eq!(got, ids, "each has a key of its own");
    for (text, id) in ODD.into_iter().zip(ids) {
        let x = other.row(id).await;
        assert_eq!((x.kind.as_str(), x.key.unwrap().as_str()), (text, text));
    }
}

/// Progress, errors, worker, times and history are stored.
pub async fn results_and_errors_of_runs_are_kept(handles: Handles) {
    let (one, other) = usual(handles).await;
    let id = one.add_one(task()).await;
    let mut worker = other.worker();
    for text in ["'; DROP TABLE tasks; --", "line\nbreak\ttab", "ü🦀"] {
        let run = worker.one().await;
        let progress = Progress { done: u64::MAX >> 11, total: 7, text: text.into() };
        let step = Step { progress: vec![(run.0, run.1, progress.clone())], ..worker.step() };
        worker.send(step).await;
        assert_eq!(one.row(id).await.progress, Some(progress));
        worker.end(run, Outcome::Retry(Micros::ZERO, text.into())).await;
        let x = one.row(id).await;
        let last = x.history.last().unwrap();
        assert_eq!((x.error.as_deref(), last.error.as_deref(), last.token), (Some(text), Some(text), run.1));
        assert_eq!((last.worker, x.progress), (Some(worker.id), None));
        assert!(last.leased.unwrap() <= last.ended);
    }
    assert_eq!(one.row(id).await.history.len(), 3);
}

/// Edges are readable from both ends.
pub async fn edges_are_listed_from_both_ends(handles: Handles) {
    let (one, other) = usual(handles).await;
    let up = one.add_one(task()).await;
    let mut down = behind([up], OnFailure::Wait);
    down.edges[0].name = Some(Key::new("ü %").unwrap());
    let down = one.add_one(down).await;
    let (above, below) = (other.stored(up).await, other.stored(down).await);
    assert_eq!(above.downstreams, below.upstreams);
    let edge = &above.downstreams[0];
    assert_eq!((edge.up, edge.down, edge.on_failure), (up, down, OnFailure::Wait));
    assert_eq!(edge.name.as_ref().map(Key::as_str), Some("ü %"));
    assert_eq!((above.upstreams.len(), below.downstreams.len(), below.task.state), (0, 0, State::Added));
}

/// Replies are bounded: large payloads need several leases and pages.
pub async fn large_replies_come_in_parts(handles: Handles) {
    use interval_queue_task_contract::{Read, Reply, Selector};
    let (one, other) = usual(handles).await;
    let large = Json::new(format!("\"{}\"", "x".repeat(1_000_000))).unwrap();
    let ids = one.add((0..10).map(|_| NewTask { payload: large.clone(), ..task() })).await;
    let mut found = Vec::new();
    let mut after = None;
    loop {
        let read = Read::Page {
            selector: Selector::default(),
            after: after.unwrap_or(Order::Oldest.start()),
            limit: 1_000,
            bodies: true,
        };
        let Reply::Page(page) = other.read(read).await else { panic!("a read shows no page") };
        assert!(page.tasks.len() < 10, "a reply has 4 MiB at most");
        found.extend(page.tasks.iter().map(|stored| stored.task.id));
        assert!(page.tasks.iter().all(|stored| stored.payload.as_ref() == Some(&large)));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(found, ids);
    let mut worker = other.worker();
    let mut taken = Vec::new();
    while taken.len() < 10 {
        let some = worker.take(10).await;
        assert!((1..10).contains(&some.len()), "{}", some.len());
        taken.extend(some);
    }
    assert_eq!(taken, ids);
}
