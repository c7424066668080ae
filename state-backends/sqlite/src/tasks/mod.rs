//! Stored tasks in tables. Many commands share a transaction.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use interval_queue_contract::{Changes, Micros, QueueName, StateError, StateErrorKind};
use interval_queue_store::{Component, files::clock};
use interval_queue_task_contract::{
    Command, Reply, TaskStore,
    index::{self, Declared},
    rules,
};
use rusqlite::Connection;
use tokio::{sync::oneshot, time::timeout};

#[cfg(all(test, unix))]
#[path = "../../tests/unit/interleaved/mod.rs"]
pub(crate) mod interleaved;
mod rows;
mod watch;
mod within;
mod writer;

pub use self::rows::{Tables, Writes};
use self::{
    watch::Watchers,
    writer::{Request, Writer},
};
use crate::{SqliteStore, store::Fault};

/// The tables of tasks.
pub static TASKS: Component = Component {
    name: "interval_queue_task",
    first: 5,
    migrations: &[include_str!("migrations/1.sql")],
    declared: || index::declared().iter().map(Declared::creation).collect(),
    grants: "the right to write to the file",
};

/// The writer thread may need this long to start a command, even without contention.
const MIN_COMMAND_TIMEOUT: Duration = Duration::from_millis(250);

type Clock = Arc<dyn Fn() -> Micros + Send + Sync>;

/// Stored tasks in one SQLite database that processes share. See the [crate's documentation](crate).
///
/// Clones share the connection. One per process and database is enough. Commands of one handle
/// share transactions.
#[derive(Clone)]
pub struct SqliteTasks {
    shared: Arc<Shared>,
    writer: Writer,
}

pub(crate) struct Shared {
    store: SqliteStore,
    clock: Clock,
    writes: Writes,
    watchers: Arc<Watchers>,
}

impl SqliteTasks {
    /// Opens the database at `path` with the defaults of the [`Builder`](crate::Builder).
    ///
    /// # Errors
    ///
    /// As [`Builder::open`](crate::Builder::open) and [`on`](Self::on).
    pub async fn open(path: impl Into<PathBuf>) -> Result<Self, StateError> {
        Self::on(&SqliteStore::builder(path).open().await?).await
    }

    /// Opens the tasks of a database. If the database or its tables of tasks are missing, the first
    /// command that stores something creates them; reads create nothing.
    ///
    /// # Errors
    ///
    /// Each error names the path and a remedy.
    ///
    /// | kind | why |
    /// |---|---|
    /// | `Damaged` | the database is corrupt |
    /// | `Foreign` | the file is no SQLite database, or its table `interval_queue_task` has another owner |
    /// | `NewerVersion` | a newer version of this software made the tables |
    /// | `Unsupported` | a network mount, or a file mounted by itself |
    /// | `Unreachable` | another process held the database too long, the file system failed, or no thread can be started |
    ///
    /// # Cancel safety
    ///
    /// It changes nothing, except what SQLite recovers after a crash.
    pub async fn on(store: &SqliteStore) -> Result<Self, StateError> {
        Self::with_clock(store, || Micros::new(clock::host())).await
    }

    /// As [`on`](Self::on), with another clock than the host's, for tests.
    ///
    /// # Errors
    ///
    /// As [`on`](Self::on).
    #[doc(hidden)]
    pub async fn with_clock(
        store: &SqliteStore,
        clock: impl Fn() -> Micros + Send + Sync + 'static,
    ) -> Result<Self, StateError> {
        store.read(&TASKS, |_| Ok(())).await?;
        let (writes, watchers) = (Writes::default(), Arc::new(Watchers::new(store)));
        let shared = Arc::new(Shared { store: store.clone(), clock: Arc::new(clock), writes, watchers });
        Ok(Self { writer: Writer::start(shared.clone())?, shared })
    }

    /// The path of the database: absolute and without symbolic links.
    pub fn path(&self) -> &Path {
        self.shared.store.path()
    }

    /// Closes the connections; see [`SqliteStore::close`].
    ///
    /// # Errors
    ///
    /// As [`SqliteStore::close`].
    pub async fn close(&self) -> Result<(), StateError> {
        self.shared.store.close().await
    }
}

impl Shared {
    /// Returns also the number of the notification if watchers must be notified.
    fn carry_out(
        &self,
        on: &Connection,
        queue: &QueueName,
        command: &Command,
    ) -> Result<(Reply, Option<i64>), Fault> {
        let mut tables = Tables::new(on, self.store.path(), &self.writes, queue);
        let reply = rules::apply(&mut tables, (self.clock)(), command)?;
        Ok((reply, tables.finish()?))
    }
}

fn check_version(on: &Connection) -> Result<(), Fault> {
    let version: i64 = on
        .prepare_cached("SELECT version FROM interval_queue_task_schema")?
        .query_row([], |row| row.get(0))?;
    // Another version of this software has migrated them.
    if version == TASKS.known() as i64 { Ok(()) } else { Err(Fault::Moved) }
}

/// # Cancel safety
///
/// A command that has begun is completed, even if its future is dropped. A command that still waits
/// for others is not begun.
#[async_trait]
impl TaskStore for SqliteTasks {
    async fn apply(&self, queue: &QueueName, command: Command) -> Result<Reply, StateError> {
        if command.is_read() {
            return self.read(queue, command).await;
        }
        let (reply, mut answer) = oneshot::channel();
        let claimed = Arc::new(AtomicBool::new(false));
        self.writer.send(Request { queue: queue.clone(), command, claimed: claimed.clone(), reply })?;
        let wait_timeout = self.shared.store.lock_timeout().max(MIN_COMMAND_TIMEOUT);
        let answer = match timeout(wait_timeout, &mut answer).await {
            Ok(answer) => answer,
            // Claimed before the thread could begin the command: it will not run.
            Err(_) if !claimed.swap(true, Ordering::Relaxed) => {
                return Err(self.shared.store.held_too_long());
            }
            // The thread has begun, and has a time-out of its own.
            Err(_) => answer.await,
        };
        match answer {
            Ok(Ok(reply)) => reply,
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            Err(_) => Err(writer::gone(&self.shared.store)),
        }
    }

    async fn queues(&self) -> Result<Vec<QueueName>, StateError> {
        let names = |on: &Connection| {
            check_version(on)?;
            let sql = "SELECT name FROM interval_queue_task_queue WHERE settings IS NOT NULL ORDER BY name";
            let mut names = on.prepare_cached(sql)?;
            let names = names.query_map([], |row| row.get(0))?;
            Ok(names.collect::<Result<Vec<String>, _>>()?)
        };
        let names = self.shared.store.read_pooled(&TASKS, names).await?.unwrap_or_default();
        let named = |name: String| {
            QueueName::new(name).map_err(|error| {
                let what =
                    "has a queue in table interval_queue_task_queue whose name is none: remove that row";
                let text = format!("{} {what}", self.path().display());
                StateError::new(StateErrorKind::Foreign, text).with_source(error)
            })
        };
        names.into_iter().map(named).collect()
    }

    async fn changes(&self, queue: &QueueName) -> Result<Changes, StateError> {
        self.shared.watchers.watch(queue).await
    }
}

impl SqliteTasks {
    async fn read(&self, queue: &QueueName, command: Command) -> Result<Reply, StateError> {
        let (shared, queue) = (self.shared.clone(), queue.clone());
        let (of, asked) = (queue.clone(), command.clone());
        let read = move |on: &Connection| {
            // All rows are read from one snapshot.
            let _transaction = on.unchecked_transaction()?;
            check_version(on)?;
            Ok(shared.carry_out(on, &of, &asked)?.0)
        };
        match self.shared.store.read_pooled(&TASKS, read).await? {
            Some(reply) => Ok(reply),
            None => {
                command.check()?;
                Err(rules::no_queue())
            }
        }
    }
}

impl fmt::Debug for SqliteTasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteTasks").field("store", &self.shared.store).finish_non_exhaustive()
    }
}
