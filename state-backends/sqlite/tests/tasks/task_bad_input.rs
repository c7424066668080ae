//! Whatever is wrong with what is stored: a clear error, and nothing is overwritten.

use std::{fs, path::Path};

use interval_queue_contract::{Micros, QueueName, StateError, StateErrorKind};
use interval_queue_sqlite::{SqliteState, SqliteStore, SqliteTasks};
use interval_queue_task_contract::{Command, Read, TaskStore};
use rusqlite::Connection;

use super::support::{Hand, add, all, id, mail, open, task};

fn other(path: &Path) -> Connection {
    Connection::open(path).unwrap()
}

fn assert_error(error: &StateError, kind: StateErrorKind, path: &Path, says: &str) {
    assert_eq!(error.kind(), kind, "{error}");
    let text = error.to_string();
    let name = path.file_name().unwrap().to_str().unwrap();
    assert!(text.contains(name) && text.contains(says), "{text} says nothing of {says}");
}

#[tokio::test]
async fn a_database_of_something_else_stays_as_it_is() {
    use StateErrorKind::{Damaged, Foreign, NewerVersion};
    let schema = "CREATE TABLE interval_queue_task_schema (only_row INTEGER PRIMARY KEY, version)";
    let newer = format!(
        "{schema}; CREATE TABLE interval_queue_task (a); INSERT INTO interval_queue_task_schema VALUES (1, 99)"
    );
    for (script, kind, says) in [
        ("CREATE TABLE interval_queue_task (id, job)", Foreign, "not of this software"),
        (schema, Damaged, "no table interval_queue_task any more"),
        (&newer, NewerVersion, "upgrade the program"),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("tasks.db");
        other(&path).execute_batch(script).unwrap();
        let before = fs::read(&path).unwrap();
        assert_error(&SqliteTasks::open(&path).await.unwrap_err(), kind, &path, says);
        assert_eq!(fs::read(&path).unwrap(), before, "{says}");
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tasks.db");
    fs::write(&path, "hello".repeat(1_000)).unwrap();
    assert_error(&SqliteTasks::open(&path).await.unwrap_err(), Foreign, &path, "is not an SQLite database");
}

#[tokio::test]
async fn a_newer_version_that_comes_meanwhile_is_noticed_by_all() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tasks.db");
    let store = open(&path).await;
    store.apply(&mail(), add([task(1)])).await.unwrap();
    assert_eq!(all(&store, &mail()).await.len(), 1);
    let set = |version| {
        _ = other(&path).execute("UPDATE interval_queue_task_schema SET version = ?1", [version]).unwrap()
    };
    set(6);
    for error in [
        store.apply(&mail(), add([task(2)])).await.unwrap_err(),
        store.apply(&mail(), Command::Read(Read::Overview)).await.unwrap_err(),
        store.queues().await.unwrap_err(),
    ] {
        assert_error(&error, StateErrorKind::NewerVersion, &path, "upgrade the program");
    }
    set(5);
    store.apply(&mail(), add([task(2)])).await.unwrap();
    assert_eq!(all(&store, &mail()).await.len(), 2);
}

#[tokio::test]
async fn a_row_edited_into_nonsense_is_named_and_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tasks.db");
    let store = open(&path).await;
    store.apply(&mail(), add([task(1), task(2)])).await.unwrap();
    let set = "UPDATE interval_queue_task SET tags = '{\"red\": 1}' WHERE id = ?1";
    other(&path).execute(set, [id(1).to_string()]).unwrap();
    let error = Hand::new(&store, 1).try_step(Vec::new(), 1).await.unwrap_err();
    assert_error(&error, StateErrorKind::Damaged, &path, "column tags");
    assert!(error.to_string().contains(&id(1).to_string()), "{error}");
    let tags = "SELECT tags FROM interval_queue_task WHERE id = ?1";
    let tags: String = other(&path).query_row(tags, [id(1).to_string()], |row| row.get(0)).unwrap();
    assert_eq!(tags, "{\"red\": 1}");
    // Other queues know nothing of it.
    let elsewhere = QueueName::new("elsewhere").unwrap();
    store.apply(&elsewhere, add([task(3)])).await.unwrap();
    assert_eq!(all(&store, &elsewhere).await.len(), 1);
    other(&path).execute("UPDATE interval_queue_task SET tags = NULL", []).unwrap();
    let stepped = Hand::new(&store, 2).step(Vec::new(), 2).await;
    assert_eq!(stepped.leased.len(), 2);
}

#[tokio::test]
async fn a_database_that_is_deleted_is_made_again() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tasks.db");
    let store = open(&path).await;
    store.apply(&mail(), add([task(1)])).await.unwrap();
    assert_eq!(all(&store, &mail()).await.len(), 1);
    fs::remove_file(&path).unwrap();
    assert_eq!(store.queues().await.unwrap(), []);
    let error = store.apply(&mail(), Command::Read(Read::Overview)).await.unwrap_err();
    assert_eq!(error.kind(), StateErrorKind::NotFound, "{error}");
    assert!(!path.exists(), "a look leaves nothing behind");
    store.apply(&mail(), add([task(2)])).await.unwrap();
    assert_eq!(all(&store, &mail()).await[0].task.id, id(2));
}

#[tokio::test]
async fn tasks_and_paces_share_a_database() {
    use interval_queue_contract::{Change, MaxRunning, Memory, OnExisting, Rates, SharedState};
    let directory = tempfile::tempdir().unwrap();
    let store = SqliteStore::builder(directory.path().join("app.db")).open().await.unwrap();
    let (pace, tasks) = (SqliteState::on(&store).await.unwrap(), SqliteTasks::on(&store).await.unwrap());
    let open = Change::Open {
        rates: Some(Rates::every(Micros::from_millis(250))),
        max_running: MaxRunning::Keep,
        on_existing: OnExisting::Replace,
    };
    for n in 0..3 {
        pace.apply(&mail(), interval_queue_contract::Command::Change(open, Memory::default())).await.unwrap();
        tasks.apply(&mail(), add([task(n)])).await.unwrap();
    }
    assert_eq!(SharedState::queues(&pace).await.unwrap(), [mail()]);
    assert_eq!(TaskStore::queues(&tasks).await.unwrap(), [mail()]);
    assert_eq!(all(&tasks, &mail()).await.len(), 3);
}

#[tokio::test]
async fn an_overwritten_database_is_noticed_with_any_log() {
    for is_checkpointed in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("tasks #1.db");
        let tasks = open(&path).await;
        tasks.apply(&mail(), add([task(1)])).await.unwrap();
        if is_checkpointed {
            other(&path).execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
        }
        tasks.apply(&mail(), add([task(2)])).await.unwrap();
        fs::write(&path, [b'x'; 200_000]).unwrap();
        let error = tasks.apply(&mail(), add([task(3)])).await.unwrap_err();
        assert_error(&error, StateErrorKind::Foreign, &path, "is not an SQLite database");
        assert!(fs::read(&path).unwrap().iter().all(|byte| *byte == b'x'));
    }
}
