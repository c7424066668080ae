//! The drivers by which applications lend their transactions.

use std::ops::Deref;

use futures::future::join3;
use interval_queue_contract::{StateError, StateErrorKind};
use tokio_postgres::types::{ToSql, Type};

use self::sealed::Driver;

/// Lets the application's transaction continue after a failed call.
const SAVE: &str = "SAVEPOINT interval_queue";
const KEEP: &str = "RELEASE SAVEPOINT interval_queue";
const UNDO: &str = "ROLLBACK TO SAVEPOINT interval_queue; RELEASE SAVEPOINT interval_queue";

/// A transaction of an application: a reference to one of tokio_postgres or deadpool_postgres, or,
/// with the feature `sqlx`, `&mut sqlx::PgConnection`, which is `&mut *transaction`.
///
/// A call on sqlx takes three round trips, because sqlx sends one statement at a time; the first call
/// on a connection takes four, because sqlx prepares it. On the other drivers each call takes one.
pub trait ApplicationTransaction: Driver {}

mod sealed {
    use super::StateError;

    pub trait Driver: Send {
        /// Calls an SQL function in a savepoint. Its arguments and its result are texts.
        fn call(
            self,
            sql: &str,
            arguments: &[Option<&str>],
        ) -> impl Future<Output = Result<String, StateError>> + Send;
    }
}

impl ApplicationTransaction for &tokio_postgres::Transaction<'_> {}

impl Driver for &tokio_postgres::Transaction<'_> {
    async fn call(self, sql: &str, arguments: &[Option<&str>]) -> Result<String, StateError> {
        let parameters: Vec<(&(dyn ToSql + Sync), Type)> =
            arguments.iter().map(|text| (text as &(dyn ToSql + Sync), Type::TEXT)).collect();
        // Sent together: one round trip.
        let (saved, called, kept) =
            join3(self.batch_execute(SAVE), self.query_typed_one(sql, &parameters), self.batch_execute(KEEP))
                .await;
        let called = match (saved, called) {
            (Err(error), _) => Err(error),
            (Ok(()), Ok(row)) => kept.and_then(|()| row.try_get(0)),
            (Ok(()), Err(error)) => self.batch_execute(UNDO).await.and(Err(error)),
        };
        called.map_err(|error| {
            let refused = error.as_db_error().map(|refused| (refused.code().code(), refused.message()));
            call_error(refused).with_source(error)
        })
    }
}

impl ApplicationTransaction for &deadpool_postgres::Transaction<'_> {}

impl Driver for &deadpool_postgres::Transaction<'_> {
    async fn call(self, sql: &str, arguments: &[Option<&str>]) -> Result<String, StateError> {
        self.deref().call(sql, arguments).await
    }
}

#[cfg(feature = "sqlx")]
impl ApplicationTransaction for &mut sqlx::PgConnection {}

#[cfg(feature = "sqlx")]
impl Driver for &mut sqlx::PgConnection {
    async fn call(self, sql: &str, arguments: &[Option<&str>]) -> Result<String, StateError> {
        use sqlx::Executor;
        // sqlx 0.9 takes SQL that is not static only from its builder.
        let mut sql = sqlx::QueryBuilder::new(sql);
        let call = arguments.iter().fold(sql.build_query_scalar(), |call, text| call.bind(*text));
        let called = async {
            self.execute(SAVE).await?;
            match call.fetch_one(&mut *self).await {
                Ok(text) => self.execute(KEEP).await.map(|_| text),
                Err(error) => self.execute(UNDO).await.and(Err(error)),
            }
        };
        called.await.map_err(|error: sqlx::Error| {
            let refused = error.as_database_error();
            let code = refused.and_then(|refused| refused.code());
            let refused = refused.map(|refused| (code.as_deref().unwrap_or_default(), refused.message()));
            call_error(refused).with_source(error)
        })
    }
}

/// The error for the SQL state and the message of the server. `None`: the connection was lost.
fn call_error(refused: Option<(&str, &str)>) -> StateError {
    let Some((code, message)) = refused else {
        let text = "the connection to postgres was lost: nothing was stored";
        return StateError::new(StateErrorKind::Unreachable, text);
    };
    let (kind, text) = match code {
        "55000" => (StateErrorKind::Superseded, message),
        "22023" => (StateErrorKind::Invalid, message),
        "23505" => (StateErrorKind::Conflict, message),
        "23503" => (StateErrorKind::NotFound, message),
        "42501" => (StateErrorKind::Denied, message),
        // No schema, no function.
        "3F000" | "42883" => (
            StateErrorKind::NotFound,
            "there are no tasks in this schema of the database: is it the one of the queue?",
        ),
        // No savepoint.
        "25P01" => (StateErrorKind::Invalid, "the connection is not in a transaction: begin one first"),
        _ => (StateErrorKind::Unreachable, &*format!("postgres does not carry out the call: {message}")),
    };
    StateError::new(kind, text)
}
