//! An application whose transaction says something to the store.

use std::path::Path;

use async_trait::async_trait;
use interval_queue_contract::{QueueName, StateError, StateErrorKind};
use interval_queue_task_conformance::interleaved::{End, Session, SessionState, Within, WithinReply};
use rusqlite::{Connection, ErrorCode};

use crate::SqliteTasks;

/// What it does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Begins,
    Says,
    Writes,
    Commits,
}

/// Its transaction.
pub(super) struct Saying {
    connection: Connection,
    store: SqliteTasks,
    queue: QueueName,
    within: Within,
    next: Next,
    said: Option<Result<WithinReply, StateErrorKind>>,
}

impl Saying {
    pub(super) fn begin(path: &Path, store: &SqliteTasks, queue: &QueueName, within: Within) -> Self {
        let connection = Connection::open(path).unwrap();
        connection.busy_timeout(std::time::Duration::ZERO).unwrap();
        let (store, queue) = (store.clone(), queue.clone());
        Self { connection, store, queue, within, next: Next::Begins, said: None }
    }

    fn say(&self) -> Result<WithinReply, StateError> {
        let (on, queue) = (&self.connection, &self.queue);
        match &self.within {
            Within::Adds(add) => self.store.add_within(on, queue, add.clone()).map(WithinReply::Added),
            Within::Completes(worker, completion) => {
                self.store.complete_within(on, queue, *worker, completion).map(WithinReply::Completed)
            }
        }
    }

    /// Nobody is in the way of one that is in its transaction.
    fn run(&self, sql: &str) {
        self.connection.execute_batch(sql).unwrap();
    }
}

#[async_trait]
impl Session for Saying {
    async fn go_on(&mut self) -> SessionState {
        self.next = match self.next {
            Next::Begins => {
                self.run("BEGIN");
                Next::Says
            }
            Next::Says => match self.say() {
                Ok(said) => {
                    self.said = Some(Ok(said));
                    Next::Writes
                }
                Err(error) if error.kind() == StateErrorKind::Unreachable => return SessionState::Waits,
                Err(error) => {
                    self.said = Some(Err(error.kind()));
                    self.run("ROLLBACK");
                    return SessionState::Over;
                }
            },
            Next::Writes => {
                let insert = "INSERT INTO letter VALUES (?1, 'said')";
                self.connection.execute(insert, [self.queue.as_str()]).unwrap();
                Next::Commits
            }
            Next::Commits => match self.connection.execute_batch("COMMIT") {
                Ok(()) => return SessionState::Over,
                Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => {
                    return SessionState::Waits;
                }
                Err(error) => panic!("{error}"),
            },
        };
        SessionState::Held
    }

    async fn end(&mut self) -> End {
        End::Within(self.said.take())
    }
}
