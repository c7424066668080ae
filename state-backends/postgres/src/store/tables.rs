//! The tables of a component, and transactions on them.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use futures::future::{try_join, try_join_all};
use interval_queue_contract::{StateError, StateErrorKind};
use interval_queue_store::Component;
use tokio_postgres::Row;

use super::{
    PostgresStore,
    connection::PooledConnection,
    error::{Failure, RetryAction},
    migrate::Purpose,
    sql::Statement,
};

/// Requires that the transaction stored nothing.
pub(crate) const MAX_ATTEMPTS: u32 = 3;

/// The first transaction that stores something creates the tables.
#[derive(Clone)]
pub(crate) struct Tables {
    store: PostgresStore,
    component: Component,
    /// Set by the last check.
    is_current: Arc<AtomicBool>,
}

/// A result, and the statements to store before it is returned. If the first statement affects no
/// row, another process was faster, and the transaction starts over.
pub(crate) type Decided<'a, T> = (T, Vec<Statement<'a>>);

impl PostgresStore {
    /// Missing tables are no error; tables of another owner are.
    pub(crate) async fn tables(&self, component: Component) -> Result<Tables, StateError> {
        let missing = self.0.upgrade(&component, Purpose::Check).await.map_err(|failure| failure.error)?;
        Ok(Tables { store: self.clone(), component, is_current: Arc::new(missing.is_none().into()) })
    }
}

impl Tables {
    /// One round trip, without locks. `None`: there are no tables.
    pub(crate) async fn read(&self, query: &Statement<'_>) -> Result<Option<Vec<Row>>, StateError> {
        let mut left = MAX_ATTEMPTS;
        loop {
            left -= 1;
            match self.store.0.read(query).await {
                Ok(rows) => return Ok(Some(rows)),
                Err(Failure { action: RetryAction::MakeTables, .. }) => return Ok(None),
                Err(Failure { action: RetryAction::Retry, .. }) if left > 0 => {}
                Err(failure) => return Err(failure.error),
            }
        }
    }

    /// Runs a transaction of two round trips. The first begins it and runs `query`, which returns
    /// one row. The second stores the statements that `decide` returns, and commits.
    ///
    /// [`TimedOut`](StateErrorKind::TimedOut) comes from the second trip: the commit may have
    /// happened. All other errors mean that nothing was stored. Transactions that the server rolls
    /// back are retried.
    pub(crate) async fn transact<'a, T>(
        &self,
        query: &Statement<'_>,
        decide: impl Fn(&Row) -> Result<Decided<'a, T>, StateError>,
    ) -> Result<T, StateError> {
        let mut left = MAX_ATTEMPTS;
        loop {
            left -= 1;
            match self.transact_once(query, &decide).await {
                Ok(answer) => return answer,
                Err(failure) if left == 0 || failure.action == RetryAction::GiveUp => {
                    return Err(failure.error);
                }
                Err(Failure { action: RetryAction::MakeTables, .. }) => {
                    self.is_current.store(false, Ordering::Relaxed)
                }
                Err(_) => {}
            }
        }
    }

    async fn transact_once<'a, T>(
        &self,
        query: &Statement<'_>,
        decide: &impl Fn(&Row) -> Result<Decided<'a, T>, StateError>,
    ) -> Result<Result<T, StateError>, Failure> {
        self.make().await?;
        let on = self.store.0.acquire().await?;
        let answer = self.two_trips(&on, query, decide).await;
        on.finish(answer)
    }

    pub(crate) async fn acquire(&self) -> Result<PooledConnection, Failure> {
        self.store.0.acquire().await
    }

    /// The transaction prepares repeated statements.
    pub(crate) async fn acquire_preparing(&self) -> Result<PooledConnection, Failure> {
        let mut on = self.acquire().await?;
        on.prepare(&self.store.0.sessions);
        Ok(on)
    }

    pub(crate) async fn are_current(&self) -> Result<bool, StateError> {
        let found = self.store.0.upgrade(&self.component, Purpose::Check).await;
        found.map(|missing| missing.is_none()).map_err(|failure| failure.error)
    }

    /// Requires that the transaction stored nothing.
    ///
    /// # Errors
    ///
    /// The error of `failure`, if there is no attempt left or a retry cannot help.
    pub(crate) fn check_retry(&self, failure: Failure, left: &mut u32) -> Result<(), StateError> {
        *left = left.saturating_sub(1);
        match failure.action {
            _ if *left == 0 => return Err(failure.error),
            RetryAction::GiveUp => return Err(failure.error),
            RetryAction::MakeTables => self.is_current.store(false, Ordering::Relaxed),
            RetryAction::Retry => {}
        }
        Ok(())
    }

    pub(crate) async fn make(&self) -> Result<(), Failure> {
        if !self.is_current.load(Ordering::Relaxed) {
            self.store.0.upgrade(&self.component, Purpose::Make).await?;
            self.is_current.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    async fn two_trips<'a, T>(
        &self,
        on: &PooledConnection,
        query: &Statement<'_>,
        decide: &impl Fn(&Row) -> Result<Decided<'a, T>, StateError>,
    ) -> Result<Result<T, StateError>, Failure> {
        for _ in 0..MAX_ATTEMPTS {
            let parameters = query.parameters();
            let row = on.query_typed_one(query.sql, &parameters);
            let ((), row) = on.round_trip(try_join(on.batch_execute(&self.store.0.begin), row)).await?;
            let (answer, statements) = match decide(&row) {
                Ok((answer, statements)) if !statements.is_empty() => (answer, statements),
                refused => {
                    on.round_trip(on.batch_execute("ROLLBACK")).await?;
                    return Ok(refused.map(|(answer, _)| answer));
                }
            };
            let stored = try_join_all(
                statements
                    .iter()
                    .map(async |statement| on.execute_typed(statement.sql, &statement.parameters()).await),
            );
            let (rows, ()) = on.commit(try_join(stored, on.batch_execute("COMMIT"))).await?;
            if rows[0] > 0 {
                return Ok(Ok(answer));
            }
        }
        let text = "postgres does not keep the row of the queue: see which trigger or policy of the table forbids it";
        Err(StateError::new(StateErrorKind::Denied, text).into())
    }
}
