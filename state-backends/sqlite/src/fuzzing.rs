//! The tables of stored tasks in memory, for the fuzz targets in `fuzz/`. Not part of the public
//! API.
#![allow(missing_docs, clippy::missing_errors_doc, reason = "each does what its name says")]

use std::path::Path;

use interval_queue_contract::{Micros, QueueName, StateError};
use interval_queue_task_contract::{Command, Reply, Rows, Task, TaskId, rules};
use rusqlite::Connection;

use crate::{
    store::Fault,
    tasks::{TASKS, Tables, Writes},
};

/// The reason of a failed command: an error for the caller, or a failure of SQLite.
#[derive(Debug)]
pub enum Failed {
    Rejected(StateError),
    Sqlite(rusqlite::Error),
}

#[derive(Debug)]
pub struct Bench {
    connection: Connection,
    writes: Writes,
}

/// The path in error messages.
pub const PATH: &str = "/tasks.db";

impl Bench {
    /// Creates the tables, with their constraints if `as_made`, or else without constraints.
    pub fn new(as_made: bool) -> rusqlite::Result<Self> {
        let connection = Connection::open_in_memory()?;
        let made = TASKS.steps(0).unwrap_or_default();
        if as_made {
            connection.execute_batch(&made)?;
        } else {
            connection.execute_batch("PRAGMA ignore_check_constraints = ON")?;
            let words = [
                (") STRICT, ", ") "),
                (") STRICT;", ");"),
                ("TEXT NOT NULL", "TEXT"),
                ("INTEGER NOT NULL", "INTEGER"),
            ];
            let loose = words.iter().fold(made, |made, (strict, loose)| made.replace(strict, loose));
            connection.execute_batch(&loose)?;
        }
        Ok(Self { connection, writes: Writes::default() })
    }

    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    pub fn apply(&self, queue: &QueueName, now: Micros, command: &Command) -> Result<Reply, Failed> {
        self.whole(queue, |tables| rules::apply(tables, now, command))
    }

    /// Reads a task and copies it into another queue. Returns the task as read from both.
    pub fn copy(
        &self,
        from: &QueueName,
        to: &QueueName,
        id: TaskId,
    ) -> Result<Option<[Option<Task>; 2]>, Failed> {
        let Some(task) = self.whole(from, |tables| tables.task(id))? else { return Ok(None) };
        let payload = self.whole(from, |tables| tables.payload(id))?.unwrap_or_default();
        self.whole(to, |tables| tables.insert(&task, &payload))?;
        let written = self.whole(to, |tables| tables.task(id))?;
        Ok(Some([Some(task), written]))
    }

    /// Undoes `work` if it fails.
    fn whole<T>(
        &self,
        queue: &QueueName,
        work: impl FnOnce(&mut Tables<'_>) -> Result<T, Fault>,
    ) -> Result<T, Failed> {
        self.connection.execute_batch("SAVEPOINT command").map_err(Failed::Sqlite)?;
        let mut tables = Tables::new(&self.connection, Path::new(PATH), &self.writes, queue);
        let done = work(&mut tables).and_then(|done| tables.finish().map(|_| done));
        let end = if done.is_ok() { "RELEASE command" } else { "ROLLBACK TO command; RELEASE command" };
        self.connection.execute_batch(end).map_err(Failed::Sqlite)?;
        done.map_err(|fault| match fault {
            Fault::Refused(error) => Failed::Rejected(error),
            Fault::Before(error) | Fault::Commit(error) => Failed::Sqlite(error),
            Fault::Moved => Failed::Sqlite(rusqlite::Error::InvalidQuery),
        })
    }
}
