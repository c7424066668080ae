//! Transactions of applications, on the driver that the application uses.

use std::{error::Error, future::Future};

use futures::future::join3;

/// Lets the application's transaction continue after a failed call.
const SAVE: &str = "SAVEPOINT interval_queue";
const KEEP: &str = "RELEASE SAVEPOINT interval_queue";
const UNDO: &str = "ROLLBACK TO SAVEPOINT interval_queue; RELEASE SAVEPOINT interval_queue";

/// A transaction of an application: `&tokio_postgres::Transaction`. Other drivers call the SQL
/// functions.
pub trait ApplicationTransaction: driver::Driver {}

/// A call of an SQL function. Arguments are texts with the types that the function takes.
#[derive(Debug)]
pub struct Call<'c> {
    /// With its schema, quoted.
    pub(super) function: String,
    pub(super) arguments: &'c [(Option<&'c str>, &'static str)],
}

/// A failed call.
#[derive(Debug)]
pub struct CallError {
    /// The SQL state. `None`: the connection was lost.
    pub(super) code: Option<String>,
    pub(super) message: String,
    pub(super) source: Box<dyn Error + Send + Sync>,
}

pub(super) mod driver {
    use super::{Call, CallError, Future};

    /// Not public, so that only this crate implements it.
    pub trait Driver: Send {
        /// Runs the call in a savepoint. Returns its result as text.
        fn call(self, call: &Call<'_>) -> impl Future<Output = Result<String, CallError>> + Send;
    }
}

impl ApplicationTransaction for &tokio_postgres::Transaction<'_> {}

impl driver::Driver for &tokio_postgres::Transaction<'_> {
    async fn call(self, call: &Call<'_>) -> Result<String, CallError> {
        use tokio_postgres::types::{ToSql, Type};
        let numbered = call.arguments.iter().zip(1..);
        let arguments: Vec<String> = numbered.map(|((_, of), n)| format!("${n}::text::{of}")).collect();
        let sql = format!("SELECT {}({})::text", call.function, arguments.join(", "));
        let parameters: Vec<(&(dyn ToSql + Sync), Type)> =
            call.arguments.iter().map(|(text, _)| (text as &(dyn ToSql + Sync), Type::TEXT)).collect();
        // Sent together: one round trip.
        let (saved, called, kept) = join3(
            self.batch_execute(SAVE),
            self.query_typed_one(&sql, &parameters),
            self.batch_execute(KEEP),
        )
        .await;
        saved?;
        match called {
            Ok(row) => {
                kept?;
                Ok(row.try_get(0)?)
            }
            Err(error) => {
                self.batch_execute(UNDO).await?;
                Err(error.into())
            }
        }
    }
}

impl From<tokio_postgres::Error> for CallError {
    fn from(error: tokio_postgres::Error) -> Self {
        let code = error.code().map(|code| code.code().to_owned());
        let message =
            error.as_db_error().map_or_else(|| error.to_string(), |error| error.message().to_owned());
        Self { code, message, source: error.into() }
    }
}
