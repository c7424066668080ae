//! The SQLite database as a kind of state in a file, and what the tests of such states share.
#![allow(dead_code, unused_imports, reason = "each test program uses a part")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    any::Any,
    path::{Path, PathBuf},
    time::Duration,
};

use interval_queue_contract::StateError;
use interval_queue_sqlite::{Builder, Durability, SqliteState, SqliteStore};
use interval_queue_test_support::files;
pub(crate) use interval_queue_test_support::files::*;
use rusqlite::Connection;

pub(crate) struct Sqlite;

impl InFile for Sqlite {
    type State = SqliteState;
    const FILE: &'static str = "queues.db";
    const SURVIVORS: usize = 0;

    async fn open_at(path: &Path, lock_timeout: Duration) -> Result<SqliteState, StateError> {
        let builder = SqliteStore::builder(path).durability(Durability::Relaxed);
        opened(builder.lock_timeout(lock_timeout)).await
    }

    fn path(state: &SqliteState) -> &Path {
        state.path()
    }

    fn hold(path: &Path) -> Box<dyn Any> {
        let holder = other(path);
        holder.execute_batch("BEGIN IMMEDIATE").unwrap();
        Box::new(holder)
    }

    fn is_whole(path: &Path) -> bool {
        let check = other(path).query_row("PRAGMA integrity_check", [], |row| row.get::<_, String>(0));
        check.unwrap() == "ok"
    }

    fn plant(path: &Path, record: &str) {
        other(path).execute("INSERT INTO interval_queue VALUES ('odd', ?1)", [record]).unwrap();
    }

    fn records(path: &Path) -> String {
        let records = "SELECT group_concat(name || record) FROM interval_queue";
        other(path).query_row(records, [], |row| row.get(0)).unwrap()
    }
}

/// Another program's connection.
pub(crate) fn other(path: &Path) -> Connection {
    Connection::open(path).unwrap()
}

/// The state in a database that is opened so.
pub(crate) async fn opened(builder: Builder) -> Result<SqliteState, StateError> {
    SqliteState::on(&builder.open().await?).await
}

/// An open database in `directory` with the queue `mail`.
pub(crate) async fn state_in(directory: &Path) -> (SqliteState, PathBuf) {
    let path = directory.canonicalize().unwrap().join(Sqlite::FILE);
    let state = SqliteState::open(&path).await.unwrap();
    open_queue(&state).await.unwrap();
    (state, path)
}

/// Waits until all connections are closed: then all that is stored is in the one file.
pub(crate) async fn until_closed(path: &Path) {
    while path.with_file_name("queues.db-wal").exists() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// Whether SQLite finds the database in order.
pub(crate) fn is_whole(path: &Path) -> bool {
    Sqlite::is_whole(path)
}
