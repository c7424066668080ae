//! What the tests of this crate share: a queue to work on, and what lies on the disk.
#![allow(dead_code, reason = "each test program uses a part")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    path::{Path, PathBuf},
};

use interval_queue_contract::{
    Change, Command, Label, Late, MaxRunning, Memory, Micros, OnExisting, QueueName, ShardId, SharedState,
    Snapshot, StateError, StateErrorKind, Step, Stepped, Take, Ticket,
};
use interval_queue_sqlite::SqliteState;
use rusqlite::Connection;

pub(crate) fn queue(name: &str) -> QueueName {
    QueueName::new(name).unwrap()
}

/// Opens the queue `mail` with an interval of a quarter of a second.
pub(crate) async fn open_queue(state: &SqliteState) -> Result<(), StateError> {
    open_queue_named(state, "mail").await
}

pub(crate) async fn open_queue_named(state: &SqliteState, name: &str) -> Result<(), StateError> {
    let change = Change::Open {
        interval: Some(Micros::from_millis(250)),
        max_running: MaxRunning::Keep,
        on_existing: OnExisting::Join,
    };
    state.apply(&queue(name), Command::Change(change, Memory::default())).await.map(drop)
}

/// An open database in `directory` with the queue `mail`.
pub(crate) async fn state_in(directory: &Path) -> (SqliteState, PathBuf) {
    let path = directory.canonicalize().unwrap().join("queues.db");
    let state = SqliteState::open(&path).await.unwrap();
    open_queue(&state).await.unwrap();
    (state, path)
}

pub(crate) async fn look(state: &SqliteState) -> Result<Option<Snapshot>, StateError> {
    state.apply(&queue("mail"), Command::Read).await?.read()
}

/// The last ticket taken from the queue `mail`.
pub(crate) async fn last_ticket(state: &SqliteState) -> u64 {
    look(state).await.unwrap().unwrap().record.ticket.get()
}

/// A shard of the queue `mail` that only takes tickets.
#[derive(Debug)]
pub(crate) struct Taker {
    state: SqliteState,
    shard: ShardId,
    step: u64,
}

impl Taker {
    pub(crate) fn new(state: &SqliteState, shard: &str) -> Self {
        Self { state: state.clone(), shard: ShardId::new(shard).unwrap(), step: 0 }
    }

    /// Takes one ticket.
    pub(crate) async fn take(&mut self) -> Result<u64, StateError> {
        self.step += 1;
        let step = Step {
            shard: self.shard.clone(),
            label: Label::default(),
            sequence: self.step,
            memory: Memory::default(),
            lease: Micros::from_millis(60_000),
            lead: Micros::ZERO,
            take: Some(Take { request: self.step, count: 1, weights: Vec::new() }),
            ask: Vec::new(),
            then: None,
            late: Late::NextSlot,
            running: 0,
            given_up: None,
        };
        let Stepped { taken, .. } = self.state.apply(&queue("mail"), Command::Step(step)).await?.stepped()?;
        Ok(taken.map_or(Ticket::NONE, |taken| taken.first).get())
    }
}

/// Another program's connection.
pub(crate) fn other(path: &Path) -> Connection {
    Connection::open(path).unwrap()
}

/// Whether SQLite finds the database in order.
pub(crate) fn is_whole(path: &Path) -> bool {
    let check = other(path).query_row("PRAGMA integrity_check", [], |row| row.get::<_, String>(0));
    check.unwrap() == "ok"
}

pub(crate) fn assert_error(error: &StateError, kind: StateErrorKind, path: &Path, says: &str) {
    let text = error.to_string();
    assert_eq!(error.kind(), kind, "{text}: {:?}", std::error::Error::source(error));
    assert!(text.contains(says), "{text:?} does not say {says:?}");
    assert!(text.contains(&path.display().to_string()), "{text:?} does not name {}", path.display());
    assert_eq!(text.lines().count(), 1, "{text:?} is one line");
}

/// Every file below `directory`, how long it is and a number made of its contents, to compare before and
/// after. Of the index of a log, in which who looks leaves marks, only the name.
pub(crate) fn all_files(directory: &Path) -> Vec<(PathBuf, usize, u64)> {
    let mut files: Vec<_> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| {
            let is_index = path.to_string_lossy().ends_with("-shm");
            let contents = if is_index { Vec::new() } else { std::fs::read(&path).unwrap_or_default() };
            let mut hasher = DefaultHasher::new();
            contents.hash(&mut hasher);
            (path, contents.len(), hasher.finish())
        })
        .collect();
    files.sort();
    files
}
