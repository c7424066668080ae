//! Whatever is wrong with the path or with what is stored: a clear error of its own, and every byte as it
//! was.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::{fs, path::Path};

use interval_queue_contract::{Command, SharedState, StateErrorKind};
use interval_queue_sqlite::SqliteState;
use support::{
    InFile, Sqlite, Taker, all_files, assert_error, is_whole, last_ticket, look, open_queue,
    open_queue_named, other, queue, state_in, until_closed,
};

#[tokio::test]
async fn memory_is_no_path() {
    for path in ["", ":memory:"] {
        let error = SqliteState::open(path).await.unwrap_err();
        assert_error(&error, StateErrorKind::Invalid, Path::new(path), "use memory:");
    }
}

/// Checks what is said of a file that was made so, and that it stays as it is.
async fn refused(make: impl FnOnce(&Path), kind: StateErrorKind, says: &str) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().canonicalize().unwrap().join("queues.db");
    make(&path);
    let before = all_files(directory.path());
    assert_error(&SqliteState::open(&path).await.unwrap_err(), kind, &path, says);
    assert_eq!(all_files(directory.path()), before, "{says}");
}

#[tokio::test]
async fn a_file_that_is_somebody_elses_stays_as_it_is() {
    use StateErrorKind::{Damaged, Foreign, NewerVersion};
    let schema = "CREATE TABLE interval_queue_schema (only_row INTEGER PRIMARY KEY, version)";
    let both = format!("{schema}; CREATE TABLE interval_queue (a)");
    let with = |version| format!("{both}; INSERT INTO interval_queue_schema VALUES (1, {version})");
    for (script, kind, says) in [
        ("CREATE TABLE interval_queue (id, job)", Foreign, "not of this software"),
        ("CREATE TABLE Interval_Queue (id, job)", Foreign, "not of this software"),
        ("CREATE VIEW interval_queue AS SELECT 1", Foreign, "not of this software"),
        ("CREATE TABLE a (b); CREATE INDEX interval_queue ON a (b)", Foreign, "not of this software"),
        (schema, Damaged, "no table interval_queue any more"),
        (&both, Foreign, "does not have a version from 1 in one row"),
        (&both.replace("version", "colour"), Foreign, "not as this program makes them"),
        (&with(0), Foreign, "does not have a version from 1 in one row"),
        (&with(2), NewerVersion, "upgrade the program"),
    ] {
        refused(|path| other(path).execute_batch(script).unwrap(), kind, says).await;
    }
    for text in ["hello", "{\"interval_queue\": 1, \"queues\": {}}", &"x".repeat(10_000)] {
        refused(|path| fs::write(path, text).unwrap(), Foreign, "is not an SQLite database").await;
    }
}

#[tokio::test]
async fn a_damaged_database_is_left_alone_and_a_good_copy_heals() {
    let directory = tempfile::tempdir().unwrap();
    let (state, path) = state_in(directory.path()).await;
    drop(state);
    until_closed(&path).await;
    let good = fs::read(&path).unwrap();
    let mut bad = good.clone();
    // Behind the header of the file: the table of tables.
    bad[100..200].fill(0xff);
    fs::write(&path, &bad).unwrap();
    let error = SqliteState::open(&path).await.unwrap_err();
    assert_error(&error, StateErrorKind::Damaged, &path, "put a good copy in its place");
    assert_eq!(fs::read(&path).unwrap(), bad);
    fs::write(&path, &good).unwrap();
    assert_eq!(last_ticket(&SqliteState::open(&path).await.unwrap()).await, 0);
}

#[tokio::test]
async fn an_upgrade_of_an_open_database_is_noticed() {
    let directory = tempfile::tempdir().unwrap();
    let (state, path) = state_in(directory.path()).await;
    assert!(look(&state).await.unwrap().is_some());
    let set = |version| {
        let set = other(&path).execute("UPDATE interval_queue_schema SET version = ?1", [version]);
        assert_eq!(set, Ok(1));
    };
    set(2);
    for error in [
        open_queue(&state).await.unwrap_err(),
        look(&state).await.unwrap_err(),
        state.queues().await.unwrap_err(),
    ] {
        assert_error(&error, StateErrorKind::NewerVersion, &path, "upgrade the program");
    }
    set(1);
    open_queue(&state).await.unwrap();
}

#[tokio::test]
async fn a_record_that_is_cut_off_is_damaged() {
    for record in ["{\"version\": 1", ""] {
        let directory = tempfile::tempdir().unwrap();
        let (state, path) = state_in(directory.path()).await;
        Sqlite::plant(&path, record);
        let error = state.apply(&queue("odd"), Command::Read).await.unwrap_err();
        assert_error(&error, StateErrorKind::Damaged, &path, "cannot be used");
    }
}

#[tokio::test]
async fn a_database_is_shared_with_tables_of_the_application() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("app.db");
    let of_application = "PRAGMA user_version = 7; PRAGMA application_id = 8; CREATE TABLE letters (text)";
    other(&path).execute_batch(of_application).unwrap();
    let state = SqliteState::open(&path).await.unwrap();
    open_queue(&state).await.unwrap();
    let mut app = other(&path);
    let letter = app.transaction().unwrap();
    letter.execute("INSERT INTO letters VALUES ('hello')", []).unwrap();
    letter.commit().unwrap();
    assert_eq!(Taker::new(&state, "shard").take().await.unwrap(), 1);
    let number = |sql| app.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!(number("PRAGMA user_version"), 7);
    assert_eq!(number("PRAGMA application_id"), 8);
    assert_eq!(number("SELECT count(*) FROM letters"), 1);
    assert_eq!(number("SELECT record ->> 'ticket' FROM interval_queue WHERE name = 'mail'"), 1);
    let tables = "SELECT count(*) FROM sqlite_schema WHERE name LIKE 'interval_queue%' AND type = 'table'";
    assert_eq!(number(tables), 2);
    assert!(is_whole(&path));
}

#[tokio::test]
async fn any_name_of_a_queue_or_a_file_will_do() {
    let directory = tempfile::tempdir().unwrap();
    let names = ["'; DROP TABLE interval_queue; --", "100 % \"mail\"", "mail", "Mail", "Straße 日本語", "_%"];
    for file in ["file:queues.db?mode=memory", "a b%20'c'.db", "日本語"] {
        let path = directory.path().join(file);
        let state = SqliteState::open(&path).await.unwrap();
        for name in names {
            open_queue_named(&state, name).await.unwrap();
        }
        let mut sorted = names.map(queue);
        sorted.sort();
        assert_eq!(state.queues().await.unwrap(), sorted);
        assert!(path.is_file());
        assert_eq!(state.path(), path.canonicalize().unwrap());
    }
}

#[tokio::test]
async fn watching_is_rejected_with_an_alternative() {
    let directory = tempfile::tempdir().unwrap();
    let (state, path) = state_in(directory.path()).await;
    let Err(error) = state.changes(&queue("mail")).await else { panic!("nothing watches") };
    assert_error(&error, StateErrorKind::Unsupported, &path, "leave wake-ups off");
}
