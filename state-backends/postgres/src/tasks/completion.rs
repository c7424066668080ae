//! Completes a run within a transaction of the application. A deferred trigger completes the run
//! when the transaction commits: see "Completing runs in SQL" in the migration.

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
    /// Completes the run of a task within a transaction of the application, on a connection to the
    /// same database. The effects of the run and its end are stored together or not at all, so each
    /// task has its effects exactly once. The outcome is
    /// [`Done`](interval_queue_task_contract::Outcome::Done) or
    /// [`Failed`](interval_queue_task_contract::Outcome::Failed).
    ///
    /// Until the commit, no lock is held that another process waits for, even if the transaction
    /// stays open for long. The task stays leased to the worker while the worker renews its lease.
    /// **The commit fails if the token is no longer valid, or if the task was cancelled during the
    /// run**, with the SQL state 55000. The SQL functions `complete_task` and `fail_task` do the
    /// same for other languages.
    ///
    /// In a transaction with the isolation `REPEATABLE READ` or stricter, the commit may also fail
    /// with 40001, if the worker has reported progress in between: retry.
    ///
    /// Tasks that wait for this task or its key continue with the next poll of a worker.
    ///
    /// # Errors
    ///
    /// [`Superseded`](StateErrorKind::Superseded) if the token of the run is not valid, or if the
    /// task was cancelled during the run: roll back. `Invalid` for another outcome, or a result
    /// that is too large. `NotFound` if there are no tasks in the schema. After an error the
    /// transaction is as before, unless the connection was lost.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, roll back the transaction.
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
        // Sent together: one round trip.
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
