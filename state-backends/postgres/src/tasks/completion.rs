//! The end of a run within a transaction of the application. The database makes it when the transaction commits, by a
//! deferred trigger: see "Completing runs in SQL" in the migration.

use futures::future::join3;
use interval_queue_contract::{QueueName, StateError, StateErrorKind};
use interval_queue_task_contract::{Completed, Completion, State, WorkerId, rules::End};
use tokio_postgres::{
    Error, Transaction,
    error::SqlState,
    types::{ToSql, Type},
};

use super::PostgresTasks;
use crate::store::quoted;

const SAVE: &str = "SAVEPOINT interval_queue_complete";
const KEEP: &str = "RELEASE SAVEPOINT interval_queue_complete";
const UNDO: &str = "ROLLBACK TO SAVEPOINT interval_queue_complete; RELEASE SAVEPOINT interval_queue_complete";

impl PostgresTasks {
    /// Ends the run of a task within a transaction of the application, on a connection to the same database:
    /// the effects of the run that the transaction stores, and the end, are there together or not at all, so
    /// that each task has its effects exactly once. The outcome is
    /// [`Done`](interval_queue_task_contract::Outcome::Done) or
    /// [`Failed`](interval_queue_task_contract::Outcome::Failed).
    ///
    /// Until the commit nothing is locked that anybody waits for, however long that takes; the task is its
    /// worker's as long as that is heard of. **The commit fails if the token is not in force any more, or the task was
    /// cancelled while it ran**, with the SQL state 55000. From programs in other languages the SQL functions
    /// `complete_task` and `fail_task` do the same.
    ///
    /// In a transaction that is `REPEATABLE READ` or stricter the commit may also fail with 40001, if the
    /// worker has told progress of the task since: try again.
    ///
    /// What waits for the task or its key goes on with the next step of a worker.
    ///
    /// # Errors
    ///
    /// [`Superseded`](StateErrorKind::Superseded) if the token of the run is not in force now, or the task was cancelled
    /// while it ran: roll back. `Invalid` for another outcome, or a result that is too large; `NotFound` if there are no tasks in the schema. After an error
    /// the transaction is as it was before, unless the connection was lost.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, roll the transaction back.
    pub async fn complete_within(
        &self,
        transaction: &Transaction<'_>,
        queue: &QueueName,
        worker: WorkerId,
        completion: &Completion,
    ) -> Result<Completed, StateError> {
        let (state, result, error) = match completion.end()? {
            End::Done(result) => (State::Done, result.as_str(), None),
            End::Failed(why) => (State::Failed, "null", Some(why)),
        };
        let sql = format!(
            "SELECT {}.interval_queue_task_complete($1, $2, $3, $4, $5, $6::text::json, $7)",
            quoted(self.schema())
        );
        let (incarnation, attempt) =
            (super::row_reader::micros(completion.token.incarnation), i64::from(completion.token.attempt));
        let (id, worker) = (completion.id.uuid(), worker.uuid());
        let parameters: [(&(dyn ToSql + Sync), Type); 7] = [
            (&queue.as_str(), Type::TEXT),
            (&id, Type::UUID),
            (&worker, Type::UUID),
            (&incarnation, Type::INT8),
            (&attempt, Type::INT8),
            (&result, Type::TEXT),
            (&error, Type::TEXT),
        ];
        // They are sent at once: one round trip.
        let (saved, completed, kept) = join3(
            transaction.batch_execute(SAVE),
            transaction.query_typed(&sql, &parameters),
            transaction.batch_execute(KEEP),
        )
        .await;
        saved.map_err(completion_error)?;
        if let Err(error) = completed {
            transaction.batch_execute(UNDO).await.map_err(completion_error)?;
            return Err(completion_error(error));
        }
        kept.map_err(completion_error)?;
        Ok(Completed::new(completion, state))
    }
}

fn completion_error(error: Error) -> StateError {
    let message = error.as_db_error().map(|error| error.message().to_owned());
    let (kind, text) = match (error.code(), message) {
        (Some(code), Some(message)) if *code == SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE => {
            (StateErrorKind::Superseded, message)
        }
        (Some(code), Some(message)) if *code == SqlState::INVALID_PARAMETER_VALUE => {
            (StateErrorKind::Invalid, message)
        }
        (Some(code), _)
            if *code == SqlState::INVALID_SCHEMA_NAME || *code == SqlState::UNDEFINED_FUNCTION =>
        {
            let text = "there are no tasks in this schema of the database: is it the one of the queue?";
            (StateErrorKind::NotFound, text.to_owned())
        }
        (_, Some(message)) => {
            (StateErrorKind::Unreachable, format!("postgres does not complete the run: {message}"))
        }
        _ => (
            StateErrorKind::Unreachable,
            "the connection to postgres was lost: nothing was stored".to_owned(),
        ),
    };
    StateError::new(kind, text).with_source(error)
}
