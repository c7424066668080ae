//! The tables of a component, and the transactions on them.

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
    connection::Lent,
    error::{Failure, RetryAction},
    migrate::Purpose,
    sql::Statement,
};

/// How often a transaction is tried that certainly stored nothing.
pub(crate) const ATTEMPTS: u32 = 3;

/// The tables of one component in the schema of a store. They are made by the first transaction.
#[derive(Clone)]
pub(crate) struct Tables {
    store: PostgresStore,
    component: Component,
    /// Whether they are there and up to date, as far as is known.
    are_made: Arc<AtomicBool>,
}

/// What comes of a transaction, and what is stored before that may be told. The first statement has to find
/// a row, or else somebody else was quicker and the transaction begins again. None: nothing is stored.
pub(crate) type Decided<'a, T> = (T, Vec<Statement<'a>>);

impl PostgresStore {
    /// The tables of a component. Those that are not there yet are no error, others than its are.
    pub(crate) async fn tables(&self, component: Component) -> Result<Tables, StateError> {
        let missing = self.0.bring_up(&component, Purpose::Look).await.map_err(|failure| failure.error)?;
        Ok(Tables { store: self.clone(), component, are_made: Arc::new(missing.is_none().into()) })
    }
}

impl Tables {
    /// Looks, in one round trip and without a lock. None: there are no tables.
    pub(crate) async fn look(&self, question: &Statement<'_>) -> Result<Option<Vec<Row>>, StateError> {
        let mut left = ATTEMPTS;
        loop {
            left -= 1;
            match self.store.0.look(question).await {
                Ok(rows) => return Ok(Some(rows)),
                Err(Failure { action: RetryAction::MakeTables, .. }) => return Ok(None),
                Err(Failure { action: RetryAction::Retry, .. }) if left > 0 => {}
                Err(failure) => return Err(failure.error),
            }
        }
    }

    /// A transaction of two round trips, each of which says all it has to say at once: the first one begins
    /// it and asks a question that one row answers, the second one stores what that decides, and commits.
    ///
    /// An error of kind [`TimedOut`](StateErrorKind::TimedOut) comes from the second trip and leaves open
    /// whether it was stored; with any other one nothing was. What the server takes back is tried again.
    pub(crate) async fn transact<'a, T>(
        &self,
        question: &Statement<'_>,
        decide: impl Fn(&Row) -> Result<Decided<'a, T>, StateError>,
    ) -> Result<T, StateError> {
        let mut left = ATTEMPTS;
        loop {
            left -= 1;
            match self.transact_once(question, &decide).await {
                Ok(answer) => return answer,
                Err(failure) if left == 0 || failure.action == RetryAction::GiveUp => {
                    return Err(failure.error);
                }
                Err(Failure { action: RetryAction::MakeTables, .. }) => {
                    self.are_made.store(false, Ordering::Relaxed)
                }
                Err(_) => {}
            }
        }
    }

    async fn transact_once<'a, T>(
        &self,
        question: &Statement<'_>,
        decide: &impl Fn(&Row) -> Result<Decided<'a, T>, StateError>,
    ) -> Result<Result<T, StateError>, Failure> {
        self.make().await?;
        let on = self.store.0.lend().await?;
        let answer = self.two_trips(&on, question, decide).await;
        on.after(answer)
    }

    /// A connection for one transaction.
    pub(crate) async fn lend(&self) -> Result<Lent, Failure> {
        self.store.0.lend().await
    }

    /// The same, where statements that are said again and again are prepared.
    pub(crate) async fn lend_preparing(&self) -> Result<Lent, Failure> {
        let mut on = self.lend().await?;
        on.prepare(&self.store.0.sessions);
        Ok(on)
    }

    /// Whether there are tables, and such as this program knows.
    pub(crate) async fn are_there(&self) -> Result<bool, StateError> {
        let found = self.store.0.bring_up(&self.component, Purpose::Look).await;
        found.map(|missing| missing.is_none()).map_err(|failure| failure.error)
    }

    /// Whether a transaction that certainly stored nothing is tried again after this trouble.
    ///
    /// # Errors
    ///
    /// The trouble, if it is not.
    pub(crate) fn check_retry(&self, failure: Failure, left: &mut u32) -> Result<(), StateError> {
        *left = left.saturating_sub(1);
        match failure.action {
            _ if *left == 0 => return Err(failure.error),
            RetryAction::GiveUp => return Err(failure.error),
            RetryAction::MakeTables => self.are_made.store(false, Ordering::Relaxed),
            RetryAction::Retry => {}
        }
        Ok(())
    }

    /// Makes the tables, if they are not there as far as is known.
    pub(crate) async fn make(&self) -> Result<(), Failure> {
        if !self.are_made.load(Ordering::Relaxed) {
            self.store.0.bring_up(&self.component, Purpose::Make).await?;
            self.are_made.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    async fn two_trips<'a, T>(
        &self,
        on: &Lent,
        question: &Statement<'_>,
        decide: &impl Fn(&Row) -> Result<Decided<'a, T>, StateError>,
    ) -> Result<Result<T, StateError>, Failure> {
        for _ in 0..ATTEMPTS {
            let parameters = question.parameters();
            let asked = on.query_typed_one(question.sql, &parameters);
            let ((), row) = on.round_trip(try_join(on.batch_execute(&self.store.0.begin), asked)).await?;
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
