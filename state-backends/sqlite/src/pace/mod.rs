//! Rate limits: the record of each queue in a table. One transaction per command.

use std::path::{Path, PathBuf};

use async_trait::async_trait;
use interval_queue_contract::{
    Changes, Command, Micros, QueueName, Reading, Record, Reply, SharedState, StateError, StateErrorKind,
    rules,
};
use interval_queue_store::{Component, files::clock};
use rusqlite::{Connection, OptionalExtension};

use crate::{SqliteStore, store::Fault};

pub(crate) static QUEUES: Component = Component {
    name: "interval_queue",
    first: 1,
    migrations: &["
        CREATE TABLE interval_queue_schema (only_row INTEGER PRIMARY KEY CHECK (only_row = 1), version INTEGER NOT NULL) STRICT;
        INSERT INTO interval_queue_schema VALUES (1, 1);
        CREATE TABLE interval_queue (name TEXT PRIMARY KEY, record TEXT NOT NULL) STRICT, WITHOUT ROWID;
    "],
    declared: String::new,
    grants: "the right to write to the file",
};

/// Rate limits in one SQLite database that processes share. See the [crate's documentation](crate).
///
/// Clones share the connection. One per process and database is enough; several are equally safe.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use interval_queue_contract::{Change, Command, MaxRunning, Memory, Micros, OnExisting, Rates, QueueName, SharedState};
/// use interval_queue_sqlite::SqliteState;
///
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("queues.db");
/// let state = SqliteState::open(&path).await?;
/// let open = Change::Open {
///     rates: Some(Rates::every(Micros::from_millis(250))),
///     max_running: MaxRunning::Keep,
///     on_existing: OnExisting::Replace,
/// };
/// state.apply(&QueueName::new("mail")?, Command::Change(open, Memory::default())).await?;
/// assert_eq!(state.queues().await?, [QueueName::new("mail")?]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct SqliteState {
    store: SqliteStore,
}

impl SqliteState {
    /// Opens the database at `path` with the defaults of the [`Builder`](crate::Builder).
    ///
    /// # Errors
    ///
    /// As [`Builder::open`](crate::Builder::open) and [`on`](Self::on).
    pub async fn open(path: impl Into<PathBuf>) -> Result<Self, StateError> {
        Self::on(&SqliteStore::builder(path).open().await?).await
    }

    /// Opens the queues of a database. If the database or its tables of queues are missing, the
    /// first command that stores something creates them; reads create nothing.
    ///
    /// # Errors
    ///
    /// Each error names the path and a remedy.
    ///
    /// | kind | why |
    /// |---|---|
    /// | `Damaged` | the database is corrupt |
    /// | `Foreign` | the file is no SQLite database, or its table `interval_queue` has another owner |
    /// | `NewerVersion` | a newer version of this software made the tables |
    /// | `Unsupported` | a network mount, or a file mounted by itself |
    /// | `Unreachable` | another process held the database too long, or the file system failed |
    ///
    /// # Cancel safety
    ///
    /// It changes nothing, except what SQLite recovers after a crash.
    pub async fn on(store: &SqliteStore) -> Result<Self, StateError> {
        store.read(&QUEUES, |_| Ok(())).await?;
        Ok(Self { store: store.clone() })
    }

    /// The path of the database: absolute and without symbolic links.
    pub fn path(&self) -> &Path {
        self.store.path()
    }

    /// Closes the connections; see [`SqliteStore::close`].
    ///
    /// # Errors
    ///
    /// As [`SqliteStore::close`].
    pub async fn close(&self) -> Result<(), StateError> {
        self.store.close().await
    }

    /// Fails if the tables are no longer those that were opened.
    fn loading(&self, queue: &QueueName) -> impl Fn(&Connection) -> Result<Option<Record>, Fault> + 'static {
        let (path, queue) = (self.path().to_owned(), queue.clone());
        move |on| {
            let stored = on.query_row(
                "SELECT version, (SELECT record FROM interval_queue WHERE name = ?1) FROM interval_queue_schema",
                [queue.as_str()],
                |row| Ok((row.get::<_, i64>(0)?, row.get::<_, Option<String>>(1)?)),
            );
            match stored.optional()? {
                Some((version, text)) if version == QUEUES.known() as i64 => {
                    let record = text.map(|text| Record::from_json(&text)).transpose();
                    Ok(record.map_err(|error| unusable(&path, &queue, error))?)
                }
                // The tables were migrated by another version of this software, or created again.
                _ => Err(Fault::Moved),
            }
        }
    }
}

/// # Cancel safety
///
/// A command that has begun is completed, even if its future is dropped. A command that still waits
/// for others of this process is not begun.
#[async_trait]
impl SharedState for SqliteState {
    async fn apply(&self, queue: &QueueName, command: Command) -> Result<Reply, StateError> {
        let load = self.loading(queue);
        if matches!(command, Command::Read) {
            let mut record = self.store.read(&QUEUES, load).await?.flatten();
            return rules::apply(&mut record, &now(), &command);
        }
        let queue = queue.clone();
        let change = move |on: &Connection| {
            let mut record = load(on)?;
            let reply = rules::apply(&mut record, &now(), &command)?;
            match record {
                Some(record) => on.execute(
                    "INSERT INTO interval_queue VALUES (?1, ?2) ON CONFLICT DO UPDATE SET record = excluded.record",
                    (queue.as_str(), record.to_json()?),
                )?,
                None => on.execute("DELETE FROM interval_queue WHERE name = ?1", [queue.as_str()])?,
            };
            Ok(reply)
        };
        self.store.change(&QUEUES, change).await
    }

    async fn queues(&self) -> Result<Vec<QueueName>, StateError> {
        let names = |on: &Connection| {
            let mut names = on.prepare("SELECT name FROM interval_queue ORDER BY name")?;
            let names = names.query_map([], |row| row.get(0))?;
            Ok(names.collect::<Result<Vec<String>, _>>()?)
        };
        let names = self.store.read(&QUEUES, names).await?.unwrap_or_default();
        let named = |name| {
            QueueName::new(name).map_err(|error| {
                let what = "has a queue in table interval_queue whose name is none: remove that row";
                let text = format!("{} {what}", self.path().display());
                StateError::new(StateErrorKind::Foreign, text).with_source(error)
            })
        };
        names.into_iter().map(named).collect()
    }

    async fn changes(&self, _: &QueueName) -> Result<Changes, StateError> {
        let text = format!(
            "{} cannot be watched: leave wake-ups off, or use Redis, PostgreSQL or a JSON file with the feature \
             \"json-file-watch\"",
            self.path().display()
        );
        Err(StateError::new(StateErrorKind::Unsupported, text))
    }
}

fn now() -> Reading {
    Reading::of_clock(Micros::new(clock::host()))
}

fn unusable(path: &Path, queue: &QueueName, error: StateError) -> StateError {
    let what = match error.kind() {
        StateErrorKind::NewerVersion => "was written by a newer version: upgrade the program",
        _ => "cannot be used: put a good copy in its place, or remove its row to start over",
    };
    let text = format!("the record of queue {:?} in {} {what}", queue.as_str(), path.display());
    StateError::new(error.kind(), text).with_source(error)
}
