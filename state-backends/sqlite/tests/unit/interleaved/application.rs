//! An application with rows of its own in the database of the store.

use std::path::Path;

use async_trait::async_trait;
use interval_queue_contract::QueueName;
use interval_queue_task_conformance::interleaved::{Application, End, Session, SessionState};
use rusqlite::{Connection, ErrorCode, ffi};

/// A transaction of it.
pub(super) struct Sitting {
    connection: Connection,
    statements: &'static [&'static str],
    at: usize,
    queue: String,
    undone: bool,
    keeps: bool,
}

const INSERT: &str = "INSERT INTO letter VALUES (?1, 'new')";

pub(super) fn make_table(path: &Path) {
    let connection = Connection::open(path).unwrap();
    connection.execute_batch("CREATE TABLE letter (queue TEXT NOT NULL, text TEXT NOT NULL)").unwrap();
}

impl Sitting {
    pub(super) fn begin(path: &Path, queue: &QueueName, what: Application) -> Self {
        let connection = Connection::open(path).unwrap();
        connection.busy_timeout(std::time::Duration::ZERO).unwrap();
        let statements: &[_] = match what {
            Application::Commits => &["BEGIN IMMEDIATE", INSERT, INSERT, "COMMIT"],
            Application::RollsBack => &["BEGIN IMMEDIATE", INSERT, INSERT, "ROLLBACK"],
            Application::ReadsFirst => &[
                "BEGIN",
                "SELECT count(*) FROM interval_queue_tasks WHERE queue = ?1",
                "SELECT count(*) FROM letter WHERE queue = ?1",
                INSERT,
                INSERT,
                "COMMIT",
            ],
        };
        let keeps = what != Application::RollsBack;
        Self { connection, statements, at: 0, queue: queue.to_string(), undone: false, keeps }
    }

    fn run(&self, sql: &str) -> rusqlite::Result<()> {
        let mut statement = self.connection.prepare(sql)?;
        let of_queue = [&self.queue];
        let params: &[&String] = if statement.parameter_count() == 1 { &of_queue } else { &[] };
        let mut rows = statement.query(rusqlite::params_from_iter(params))?;
        while rows.next()?.is_some() {}
        Ok(())
    }
}

#[async_trait]
impl Session for Sitting {
    async fn go_on(&mut self) -> SessionState {
        match self.run(self.statements[self.at]) {
            Ok(()) => self.at += 1,
            // Others have written since it read: it must begin again.
            Err(error) if extended(&error) == Some(ffi::SQLITE_BUSY_SNAPSHOT) => {
                self.run("ROLLBACK").unwrap();
                self.undone = true;
                return SessionState::Over;
            }
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => {
                return SessionState::Waits;
            }
            Err(error) => panic!("{}: {error}", self.statements[self.at]),
        }
        if self.at == self.statements.len() { SessionState::Over } else { SessionState::Held }
    }

    async fn end(&mut self) -> End {
        let is_kept = self.keeps && !self.undone;
        let there = "SELECT count(*) FROM letter WHERE queue = ?1";
        let there: u32 = self.connection.query_row(there, [&self.queue], |row| row.get(0)).unwrap();
        assert_eq!(there, if is_kept { 2 } else { 0 }, "the rows of the application are as it was told");
        End::Application(is_kept)
    }
}

fn extended(error: &rusqlite::Error) -> Option<i32> {
    error.sqlite_error().map(|error| error.extended_code)
}
