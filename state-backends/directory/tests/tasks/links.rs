//! What the files of tasks say of their upstreams once these have changed.

use std::fs;

use interval_queue_contract::StateErrorKind;
use interval_queue_directory::DirectoryTasks;
use interval_queue_task_contract::{
    Change, ChangeTasks, Command, EdgeState, NewEdge, NewTask, OnFailure, Read, Reply, Selector, State,
    Stored, TaskStore, Verb,
};

use super::support::{Hand, add, agree, done, file, id, mail, open, task};

async fn change(store: &DirectoryTasks, verb: Verb, of: impl IntoIterator<Item = u64>) {
    let selector = Selector::ids(of.into_iter().map(id));
    let change = ChangeTasks { selector, verb, after: None, watermark: None, limit: 10, dry_run: false };
    store.apply(&mail(), Command::Change(Change::Tasks(change))).await.unwrap();
}

/// The five tasks, with what they wait for.
async fn whole(store: &DirectoryTasks) -> Vec<Stored> {
    let read = Command::Read(Read::Tasks((1..=5).map(id).collect()));
    match store.apply(&mail(), read).await.unwrap() {
        Reply::Tasks(tasks) => tasks.into_iter().flatten().collect(),
        other => panic!("{other:?}"),
    }
}

fn stored_upstreams(store: &DirectoryTasks, state: &str, n: u64) -> serde_json::Value {
    let text = fs::read_to_string(file(store.path(), state, id(n))).unwrap();
    serde_json::from_str::<serde_json::Value>(&text).unwrap()["upstreams"].clone()
}

/// A file says what its task waits for, also once the index is lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_says_what_its_task_waits_for_now() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(&directory.path().join("jobs")).await;
    let behind = |n: u64, up: u64| NewTask { edges: vec![id(up).into()], ..task(n) };
    store.apply(&mail(), add([task(1), task(2), behind(3, 1), task(4), task(5)])).await.unwrap();
    let mut hand = Hand::new(&store, 1);
    hand.step(Vec::new(), 0).await;
    let named = NewEdge {
        up: id(2),
        name: Some(interval_queue_task_contract::Key::new("sum").unwrap()),
        on_failure: OnFailure::Wait,
    };
    change(&store, Verb::Link(named), [3, 4]).await;
    change(&store, Verb::Link(id(1).into()), [4]).await;
    change(&store, Verb::Unlink(id(1)), [3]).await;
    change(&store, Verb::Link(id(1).into()), [5]).await;
    change(&store, Verb::Unlink(id(1)), [5]).await;
    hand.step(Vec::new(), 0).await;
    agree(&store).await;
    let sum = serde_json::json!({ "id": id(2), "name": "sum", "on_failure": "wait" });
    assert_eq!(stored_upstreams(&store, "waiting", 3), serde_json::json!([sum]));
    let both = stored_upstreams(&store, "waiting", 4);
    assert_eq!((both.as_array().unwrap().len(), &both[0]["id"]), (2, &serde_json::json!(id(1))));
    assert_eq!(stored_upstreams(&store, "ready", 5), serde_json::Value::Null, "the last one is gone");
    let edges = async || whole(&store).await.into_iter().map(|stored| stored.upstreams).collect::<Vec<_>>();
    let before = edges().await;
    assert_eq!(before.iter().map(Vec::len).collect::<Vec<_>>(), [0, 0, 1, 2, 0]);
    fs::remove_file(store.path().join("index.db")).unwrap();
    let mut hand = Hand::new(&store, 2);
    hand.step(Vec::new(), 0).await;
    agree(&store).await;
    assert_eq!(edges().await, before);
    for (runs, state) in [([1, 2], State::Waiting), ([3, 4], State::Done)] {
        let leased = hand.step(Vec::new(), 2).await.leased;
        let mut ids: Vec<_> = leased.iter().map(|leased| leased.task.id).collect();
        ids.sort();
        let mut expected = runs.map(id).to_vec();
        expected.sort();
        assert_eq!(ids, expected);
        hand.step(done(&leased), 0).await;
        hand.step(Vec::new(), 0).await;
        let third = whole(&store).await.swap_remove(2);
        let is = if state == State::Waiting { State::Ready } else { State::Done };
        assert_eq!(third.task.state, is);
        assert_eq!(third.upstreams[0].state, EdgeState::Met);
    }
}

/// What was refused has left nothing in a file.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_add_says_nothing_of_upstreams() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(&directory.path().join("jobs")).await;
    store.apply(&mail(), add([task(1)])).await.unwrap();
    let edges = vec![id(1).into(), id(99).into()];
    let refused = store.apply(&mail(), add([NewTask { edges, ..task(2) }])).await.unwrap_err();
    assert_eq!(refused.kind(), StateErrorKind::NotFound);
    store.apply(&mail(), add([task(2)])).await.unwrap();
    assert_eq!(stored_upstreams(&store, "ready", 2), serde_json::Value::Null);
    agree(&store).await;
}
