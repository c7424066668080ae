//! A database is dumped, restored and checked by the program `sqlite3`, which may be older than the SQLite in here.

use std::{
    path::Path,
    process::{Command as Program, Stdio},
};

use interval_queue_contract::{
    Change, Command as PaceCommand, MaxRunning, Memory, Micros, OnExisting, Rates,
};
use interval_queue_contract::{SharedState, StateError};
use interval_queue_sqlite::{SqliteState, SqliteStore};
use interval_queue_task_contract::{
    Change as TaskChange, Command, Follow, Json, Key, NewEdge, NewSchedule, NewTask, OnFailure, Overlap, Tag,
    TaskStore, Unique, Until,
};
use rusqlite::Connection;

use super::support::{Hand, add, all, done, id, mail, open, task};

fn sqlite3(path: &Path, arguments: &[&str], input: Stdio) -> String {
    let output = Program::new("sqlite3").arg(path).args(arguments).stdin(input).output().unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && stderr.is_empty(), "{arguments:?}: {stderr}");
    stdout.into_owned()
}

/// Every row of every table, sorted.
fn rows(path: &Path) -> Vec<String> {
    let on = Connection::open(path).unwrap();
    let mut tables = on.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name").unwrap();
    let tables: Vec<String> = tables.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    let mut all = Vec::new();
    for table in tables {
        let mut rows = on.prepare(&format!("SELECT * FROM {table}")).unwrap();
        let columns = rows.column_count();
        let mut rows = rows.query([]).unwrap();
        while let Some(row) = rows.next().unwrap() {
            let values: Vec<_> = (0..columns).map(|n| format!("{:?}", row.get_ref(n).unwrap())).collect();
            all.push(format!("{table}: {}", values.join(", ")));
        }
    }
    all.sort();
    all
}

/// A row of every table, with and without what need not be there.
async fn fill(path: &Path) -> Result<(), StateError> {
    let pace = SqliteState::on(&SqliteStore::builder(path).open().await?).await?;
    let rates = Some(Rates::every(Micros::from_millis(250)));
    let open_queue = Change::Open { rates, max_running: MaxRunning::Keep, on_existing: OnExisting::Replace };
    pace.apply(&mail(), PaceCommand::Change(open_queue, Memory::default())).await?;
    let store = open(path).await;
    let name = |text: &str| Key::new(text).unwrap();
    let rich = NewTask {
        key: Some(name("k")),
        unique: Some(Unique { name: name("it's"), until: Until::Ended }),
        tags: vec![Tag::new("ü").unwrap()],
        payload: Json::new(format!("[{}0]", "1.10, ".repeat(20_000))).unwrap(),
        ..task(2)
    };
    let edge = NewEdge { up: id(1), name: None, on_failure: OnFailure::Cancel };
    let down = NewTask { edges: vec![edge], ..task(3) };
    store.apply(&mail(), add([task(1), rich, down, task(4)])).await?;
    store.apply(&mail(), Command::Follow(Follow { after: None, most: 1 })).await?;
    let schedule = NewSchedule {
        name: name("nightly"),
        definition: Json::default(),
        next: None,
        paused: false,
        overlap: Overlap::Allow,
    };
    store.apply(&mail(), Command::Change(TaskChange::Schedule(schedule))).await?;
    let mut worker = Hand::new(&store, 1);
    let leased = worker.try_step(Vec::new(), 2).await?.leased;
    assert_eq!(leased.len(), 2);
    worker.try_step(done(&leased[..1]), 0).await?;
    // Nobody holds a lock when the program looks.
    pace.close().await?;
    store.close().await
}

#[tokio::test]
#[ignore = "needs sqlite3: scripts/test runs it"]
async fn a_dump_is_restored_and_the_check_finds_nothing() {
    if Program::new("sqlite3").arg("--version").output().is_err() {
        eprintln!("skipped: the program sqlite3 is not installed");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let (path, restored) = (directory.path().join("queues.db"), directory.path().join("restored.db"));
    fill(&path).await.unwrap();
    assert_eq!(sqlite3(&path, &["PRAGMA integrity_check"], Stdio::null()), "ok\n");
    let mut dump = Program::new("sqlite3").arg(&path).arg(".dump").stdout(Stdio::piped()).spawn().unwrap();
    assert_eq!(sqlite3(&restored, &["-bail"], dump.stdout.take().unwrap().into()), "");
    assert!(dump.wait().unwrap().success());
    assert_eq!(sqlite3(&restored, &["PRAGMA integrity_check"], Stdio::null()), "ok\n");
    let before = rows(&path);
    for table in ["", "_task", "_task_body", "_task_edge", "_task_worker", "_task_schedule", "_task_event"] {
        assert!(before.iter().any(|row| row.starts_with(&format!("interval_queue{table}: "))), "{table}");
    }
    assert_eq!(rows(&restored), before);
    let store = open(&restored).await;
    assert_eq!(all(&store, &mail()).await.len(), 4);
    assert_eq!(Hand::new(&store, 2).step(Vec::new(), 9).await.leased.len(), 2);
}
