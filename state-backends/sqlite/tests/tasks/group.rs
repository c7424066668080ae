//! Commands of one process share transactions, and do not share their failures.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use interval_queue_contract::{Micros, StateErrorKind};
use interval_queue_sqlite::{SqliteStore, SqliteTasks};
use interval_queue_task_contract::{Added, NewTask, OnConflict, Reply, TaskStore, Unique, Until};

use super::support::{add, all, id, mail, open, task};

fn unique(n: u64) -> NewTask {
    let name = interval_queue_task_contract::Key::new("only").unwrap();
    let unique = Some(Unique { name, until: Until::Ended });
    NewTask { unique, on_conflict: OnConflict::Refuse, ..task(n) }
}

/// Holds the database until it is dropped.
fn hold(path: &std::path::Path) -> rusqlite::Connection {
    let holder = rusqlite::Connection::open(path).unwrap();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    holder
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_commands_at_once_each_fails_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tasks.db");
    let store = open(&path).await;
    store.apply(&mail(), add([unique(0)])).await.unwrap();
    // All gather behind somebody else, so that they are carried out together.
    let holder = hold(&path);
    let commands: Vec<_> = (1..=200_u64)
        .map(|n| {
            let store = store.clone();
            // Each tenth adds two and is refused for the second.
            let tasks = if n % 10 == 0 { vec![task(n), unique(n + 1_000)] } else { vec![task(n)] };
            tokio::spawn(async move { (n, store.apply(&mail(), add(tasks)).await) })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(50)).await;
    drop(holder);
    for command in commands {
        match command.await.unwrap() {
            (n, Ok(Reply::Added(added))) => {
                assert_eq!((n % 10 > 0, &added[..]), (true, &[Added::New(id(n))][..]))
            }
            (n, Err(error)) => assert_eq!((n % 10, error.kind()), (0, StateErrorKind::Conflict), "{error}"),
            other => panic!("{other:?}"),
        }
    }
    let there: Vec<_> = all(&store, &mail()).await.iter().map(|stored| stored.task.id).collect();
    assert_eq!(there, (0..=200).filter(|n| n % 10 > 0 || *n == 0).map(id).collect::<Vec<_>>());
}

/// How often the database was written to since it was opened.
fn commits(path: &std::path::Path) -> i64 {
    let log = path.with_file_name("tasks.db-wal");
    // Frames of the log that end a transaction say how large the database is after it.
    let log = std::fs::read(log).unwrap();
    let page = u32::from_be_bytes(log[8..12].try_into().unwrap()) as usize;
    let frames = log[32..].chunks_exact(24 + page);
    frames.filter(|frame| frame[4..8] != [0; 4]).count() as i64
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_that_wait_share_a_transaction() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tasks.db");
    let store = open(&path).await;
    store.apply(&mail(), add([])).await.unwrap();
    let before = commits(&path);
    let holder = hold(&path);
    let commands: Vec<_> = (0..100_u64)
        .map(|n| {
            let store = store.clone();
            tokio::spawn(async move { store.apply(&mail(), add([task(n)])).await.unwrap() })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(50)).await;
    drop(holder);
    for command in commands {
        command.await.unwrap();
    }
    let commits = commits(&path) - before;
    assert!(commits < 50, "{commits} transactions for 100 commands");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_panic_is_its_senders_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tasks.db");
    let reads = Arc::new(AtomicUsize::new(0));
    let clock = {
        let reads = reads.clone();
        move || {
            assert!(reads.fetch_add(1, Ordering::SeqCst) % 10 != 5, "the clock is broken");
            Micros::from_millis(1_000_000)
        }
    };
    let store =
        SqliteTasks::with_clock(&SqliteStore::builder(&path).open().await.unwrap(), clock).await.unwrap();
    store.apply(&mail(), add([])).await.unwrap();
    for together in [false, true] {
        let holder = together.then(|| hold(&path));
        let commands: Vec<_> = (0..40_u64)
            .map(|n| {
                let (store, n) = (store.clone(), n + 100 * u64::from(together));
                tokio::spawn(async move { (n, store.apply(&mail(), add([task(n)])).await.unwrap()) })
            })
            .collect();
        tokio::time::sleep(Duration::from_millis(50)).await;
        drop(holder);
        let mut answered = Vec::new();
        let mut panics = 0;
        for command in commands {
            match command.await {
                Ok((n, _)) => answered.push(id(n)),
                Err(error) => panics += u64::from(error.is_panic()),
            }
        }
        assert!((1..20).contains(&panics), "{panics}");
        let is_now = |id: &_| answered.contains(id);
        reads.store(0, Ordering::SeqCst);
        let there: Vec<_> = all(&store, &mail()).await.iter().map(|stored| stored.task.id).collect();
        assert_eq!(there.iter().filter(|id| is_now(id)).count(), answered.len());
        assert_eq!(answered.len() as u64 + panics, 40);
    }
}

#[tokio::test]
async fn a_dropped_command_is_completed_or_not_begun() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tasks.db");
    let store = open(&path).await;
    store.apply(&mail(), add([])).await.unwrap();
    let holder = hold(&path);
    for n in 0..20 {
        let (queue, both) = (mail(), add([task(n), task(n + 100)]));
        let dropped = tokio::time::timeout(Duration::from_millis(n % 3), store.apply(&queue, both));
        assert!(dropped.await.is_err());
    }
    drop(holder);
    store.apply(&mail(), add([task(99)])).await.unwrap();
    let there = all(&store, &mail()).await;
    assert!(there.iter().any(|stored| stored.task.id == id(99)));
    assert_eq!(there.len() % 2, 1, "a batch is there as a whole or not at all");
}
