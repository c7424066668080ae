//! Commands within a transaction of the application, on its own connection.

use std::path::Path;

use interval_queue_contract::{Micros, QueueName, StateError, StateErrorKind};
use interval_queue_store::files::FileId;
use interval_queue_task_contract::{Add, Added, Command, Completed, Completion, WorkerId, rules};
use rusqlite::{Connection, ErrorCode, ffi};

use super::{SqliteTasks, TASKS, Tables, check_version};
use crate::store::{Fault, code, is_busy};

/// Changes nothing and takes the write lock, so that later reads stay valid. The clock is read
/// afterwards.
const LOCK: &str = "UPDATE interval_queue_task_schema SET version = version WHERE only_row = 0";

impl SqliteTasks {
    /// Adds tasks within a transaction of the application, on its own connection. They are stored
    /// if it commits, together with the application's rows, and only then. Workers are notified by
    /// the commit. Returns the outcome for each task, in the order of `add`.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use interval_queue_contract::{Micros, QueueName};
    /// # use interval_queue_sqlite::SqliteTasks;
    /// # use interval_queue_task_contract::{Add, Json, NewTask, TaskId};
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("shop.db");
    /// let tasks = SqliteTasks::open(&path).await?;
    /// let mut database = rusqlite::Connection::open(&path)?;
    /// # database.execute_batch("CREATE TABLE customer (name TEXT)")?;
    ///
    /// let mails = QueueName::new("mails")?;
    /// let welcome = NewTask::new(TaskId::LAST, Json::of(&"Ada")?);
    /// let transaction = database.transaction()?;
    /// transaction.execute("INSERT INTO customer VALUES ('Ada')", [])?;
    /// tasks.add_within(&transaction, &mails, Add { tasks: [welcome].into(), sequence: 0, age: Micros::ZERO })?;
    /// transaction.commit()?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Blocks the thread like any other statement, for at most the `busy_timeout` of the
    /// connection.
    ///
    /// # Errors
    ///
    /// After an error the transaction is as before the call, unless SQLite had to roll it back.
    ///
    /// | kind | why |
    /// |---|---|
    /// | `Invalid` | an invalid task, a connection without a transaction, or with another main database |
    /// | `NotFound`, `Conflict` | a missing upstream, a unique name in use, or an id that was sent long ago |
    /// | `Unreachable` | other processes write, or have written since this transaction began to read: roll back and retry |
    pub fn add_within(
        &self,
        transaction: &Connection,
        queue: &QueueName,
        add: Add,
    ) -> Result<Vec<Added>, StateError> {
        let command = Command::Add(add);
        self.within(transaction, queue, |rows, now| rules::apply(rows, now, &command))?.added()
    }

    /// Completes the run of a task within a transaction of the application. The effects of the run
    /// and its end are stored together or not at all, so each task has its effects exactly once.
    /// The outcome is [`Done`](interval_queue_task_contract::Outcome::Done) or
    /// [`Failed`](interval_queue_task_contract::Outcome::Failed).
    ///
    /// Tasks that wait for this task or its key continue with the next poll of a worker.
    ///
    /// # Errors
    ///
    /// As [`add_within`](Self::add_within), and [`Superseded`](StateErrorKind::Superseded) if the
    /// token of the run is no longer valid, or if the task was cancelled during the run: roll back.
    pub fn complete_within(
        &self,
        transaction: &Connection,
        queue: &QueueName,
        worker: WorkerId,
        completion: &Completion,
    ) -> Result<Completed, StateError> {
        self.within(transaction, queue, |rows, now| rules::complete_within(rows, now, worker, completion))
    }

    /// After an error the transaction is as before.
    fn within<T>(
        &self,
        on: &Connection,
        queue: &QueueName,
        work: impl FnOnce(&mut Tables<'_>, Micros) -> Result<T, Fault>,
    ) -> Result<T, StateError> {
        self.check_connection(on)?;
        let to_error = |fault: Fault| self.error_of(fault);
        let run = |sql: &str| Ok(on.execute_batch(sql)?);
        run("SAVEPOINT interval_queue_within").map_err(to_error)?;
        let done = self.lock(on).and_then(|()| {
            let mut tables = Tables::new(on, self.path(), &self.shared.writes, queue);
            let done = work(&mut tables, (self.shared.clock)())?;
            tables.finish()?;
            Ok(done)
        });
        if done.is_err() {
            // After some errors SQLite has already rolled back the whole transaction.
            let _: Result<(), Fault> = run("ROLLBACK TO interval_queue_within");
        }
        let released = run("RELEASE interval_queue_within");
        let done = done.map_err(to_error)?;
        released.map_err(to_error)?;
        Ok(done)
    }

    /// The commit of another connection would not commit the tasks.
    fn check_connection(&self, on: &Connection) -> Result<(), StateError> {
        let wrong = |text| Err(StateError::new(StateErrorKind::Invalid, text));
        if on.is_autocommit() {
            return wrong(
                "the connection is in no transaction: begin one, and commit it with what was added".into(),
            );
        }
        let path = on.path().filter(|path| !path.is_empty());
        let is_ours = path.and_then(|path| FileId::at(Path::new(path)));
        if is_ours.is_none() || is_ours != FileId::at(self.path()) {
            let other = path.unwrap_or("in memory");
            return wrong(format!(
                "the connection is to another database ({other}): tasks are stored in {}",
                self.path().display()
            ));
        }
        Ok(())
    }

    /// Also creates missing tables.
    fn lock(&self, on: &Connection) -> Result<(), Fault> {
        let locked = on.prepare_cached(LOCK).and_then(|mut lock| lock.execute([]));
        match locked.map_err(Fault::from).and_then(|_| check_version(on)) {
            Err(Fault::Before(error)) if is_missing(&error) => self.shared.store.upgrade(&TASKS, on),
            Err(Fault::Moved) => self.shared.store.upgrade(&TASKS, on),
            locked => locked,
        }
    }

    fn error_of(&self, fault: Fault) -> StateError {
        match fault {
            Fault::Before(error) if is_stale(&error) => {
                let text = format!(
                    "{}: others have written since this transaction began to read: roll back and begin again, at best with \
                     BEGIN IMMEDIATE",
                    self.path().display()
                );
                StateError::new(StateErrorKind::Unreachable, text).with_source(error)
            }
            Fault::Before(error) if is_busy(&error) => {
                let text = format!(
                    "{} is held by another transaction: roll back and begin again, and give this connection a busy_timeout",
                    self.path().display()
                );
                StateError::new(StateErrorKind::Unreachable, text).with_source(error)
            }
            fault => self.shared.store.error_of(fault),
        }
    }
}

fn is_missing(error: &rusqlite::Error) -> bool {
    code(error) == Some(ErrorCode::Unknown)
}

fn is_stale(error: &rusqlite::Error) -> bool {
    error.sqlite_error().is_some_and(|error| error.extended_code == ffi::SQLITE_BUSY_SNAPSHOT)
}
