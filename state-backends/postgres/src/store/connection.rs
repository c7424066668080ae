//! Pooled connections, each acquired for one transaction.

use std::{borrow::Cow, ops::Deref, pin::Pin, sync::Arc, time::Duration};

use deadpool_postgres::{Client, ClientWrapper, PoolError, TimeoutType};
use futures::{
    TryStreamExt,
    future::{FutureExt, try_join_all, try_join3, try_join4},
};
use tokio::runtime::Handle;
use tokio_postgres::{Error, Row, SimpleQueryMessage, SimpleQueryStream};

use super::{
    Inner,
    error::{self, Failure},
    prepared::{Session, Sessions, is_mixed},
    sql::{Query, Statement},
};

impl Inner {
    /// Waits for at most four time-outs.
    pub(super) async fn acquire(&self) -> Result<PooledConnection, Failure> {
        let (server_name, timeout) = (&self.server_name, self.timeout);
        // A pool of the application may have no time-outs of its own.
        match tokio::time::timeout(timeout * 4, self.pool.get()).await {
            Ok(Ok(client)) => Ok(PooledConnection { client: Some(client), timeout, preparing: None }),
            Ok(Err(PoolError::Backend(error))) => Err(error::of_connect(error, server_name)),
            Ok(Err(error)) => Err(error::no_connection(server_name, &pool_failure(&error))),
            Err(_) => Err(error::no_connection(server_name, "the pool gave none")),
        }
    }

    /// In one round trip. A transaction, so that the server waits for a table lock no longer than
    /// this client waits for the server.
    pub(super) async fn read(&self, statement: &Statement<'_>) -> Result<Vec<Row>, Failure> {
        let (on, parameters) = (self.acquire().await?, statement.parameters());
        let rows = on.query_typed(statement.sql, &parameters);
        let read = try_join3(on.batch_execute(&self.begin), rows, on.batch_execute("COMMIT"));
        let read = on.round_trip(read).await.map(|((), rows, ())| rows);
        on.finish(read)
    }
}

fn pool_failure(error: &PoolError) -> Cow<'static, str> {
    match error {
        PoolError::Timeout(TimeoutType::Create | TimeoutType::Recycle) => "the server does not answer".into(),
        PoolError::Timeout(TimeoutType::Wait) => "all are in use".into(),
        error => error.to_string().into(),
    }
}

/// Exclusive until it is dropped. If that happens during a command, it returns to the pool once the
/// server has rolled the command back, so the server never has more connections than the pool
/// allows.
pub(crate) struct PooledConnection {
    client: Option<Client>,
    timeout: Duration,
    preparing: Option<Preparation>,
}

struct Preparation {
    sessions: Arc<Sessions>,
    session: Arc<Session>,
}

impl Preparation {
    fn note_mix_up<T>(&self, answer: Result<T, Error>) -> Result<T, Error> {
        answer.inspect_err(|error| {
            if is_mixed(error) {
                self.sessions.mix();
            }
        })
    }
}

impl PooledConnection {
    /// Unless a pooler is known to move connections.
    pub(super) fn prepare(&mut self, sessions: &Arc<Sessions>) {
        let session = sessions.of(self);
        self.preparing = session.map(|session| Preparation { sessions: sessions.clone(), session });
    }

    /// Uses a prepared statement if there is one.
    pub(crate) async fn fetch(&self, query: &Query) -> Result<Vec<Row>, Error> {
        if let Some(preparing) = &self.preparing
            && let Some(statement) = preparing.session.statement(query)
        {
            return preparing.note_mix_up(self.query(&statement, &query.values()).await);
        }
        self.query_typed(&query.sql, &query.parameters()).await
    }

    /// Checks that the transaction began in the process that has the prepared statements, and
    /// returns the process. After an error the transaction must not go on. `None`: nothing is
    /// prepared.
    pub(crate) fn check_session(&self, begun: &[SimpleQueryMessage]) -> Result<Option<i32>, Failure> {
        let Some(preparing) = &self.preparing else { return Ok(None) };
        let session = begun.iter().find_map(|message| match message {
            SimpleQueryMessage::Row(row) => Some((row.get(0)?.parse().ok()?, row.get(1)?)),
            _ => None,
        });
        if let Some((process, mark)) = session
            && preparing.session.is_at(process, mark)
        {
            return Ok(Some(process));
        }
        preparing.sessions.mix();
        Err(Failure::mixed())
    }

    /// Runs `queries`, commits, and prepares repeated statements, in one round trip. `process` must
    /// have the prepared statements. The notification follows the commit in the same message, so
    /// that the server is ready only after both: PgBouncer takes a ready connection for idle. If
    /// its client leaves then, PgBouncer gives the connection to another client, which receives the
    /// outstanding answer.
    pub(crate) async fn store(
        &self,
        process: Option<i32>,
        queries: &[Query],
        notification: Option<String>,
    ) -> Result<(), Failure> {
        let prepared = self.prepare_due();
        let marked = self.mark();
        let stored = try_join_all(queries.iter().map(|query| self.fetch(query)));
        let notification = notification.map_or_else(String::new, |notification| format!("; {notification}"));
        let committing = self.begin_commit(format!("COMMIT{notification}"));
        // The futures send their messages in this order.
        let (.., mut answers) = self.commit(try_join4(prepared, marked, stored, committing)).await?;
        if let (Some(preparing), Some(process)) = (&self.preparing, process) {
            preparing.session.mark(process);
        }
        // The transaction is committed, even if the notification fails.
        let rest = async { while let Ok(Some(_)) = answers.try_next().await {} };
        let _ = tokio::time::timeout(self.timeout, rest).await;
        Ok(())
    }

    /// Waits for the commit only. The caller reads the rest of the answer.
    async fn begin_commit(&self, sql: String) -> Result<Pin<Box<SimpleQueryStream>>, Error> {
        let mut answers = Box::pin(self.simple_query_raw(&sql).await?);
        answers.try_next().await?;
        Ok(answers)
    }

    async fn prepare_due(&self) -> Result<(), Error> {
        let Some(preparing) = &self.preparing else { return Ok(()) };
        let due = preparing.session.due().into_iter().map(async |(sql, kinds)| {
            let statement = preparing.note_mix_up(self.prepare_typed(&sql, &kinds).await)?;
            preparing.session.keep(sql, statement);
            Ok(())
        });
        try_join_all(due).await.map(drop)
    }

    async fn mark(&self) -> Result<(), Error> {
        match &self.preparing {
            Some(preparing) if !preparing.session.is_marked() => {
                let marking = preparing.session.marking();
                self.query_typed(&marking.sql, &marking.parameters()).await.map(drop)
            }
            _ => Ok(()),
        }
    }

    /// Requires that the transaction has stored nothing. Does not wait: later messages queue after
    /// this one.
    pub(crate) fn end(&self, statement: &str) {
        drop(self.batch_execute(statement).now_or_never());
    }

    pub(crate) fn extend_timeout(&mut self, timeout: Duration) {
        self.timeout = self.timeout.max(timeout);
    }

    /// Requires that the round trip stores nothing.
    pub(crate) async fn round_trip<T>(
        &self,
        trip: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Failure> {
        match tokio::time::timeout(self.timeout, trip).await {
            Ok(answer) => answer.map_err(error::of_query),
            Err(_) => Err(error::no_answer()),
        }
    }

    /// Requires that the round trip ends with a commit.
    pub(crate) async fn commit<T>(&self, trip: impl Future<Output = Result<T, Error>>) -> Result<T, Failure> {
        match tokio::time::timeout(self.timeout, trip).await {
            Ok(answer) => answer.map_err(error::of_commit),
            Err(_) => Err(error::indeterminate(None).into()),
        }
    }

    /// Must be called last: returns the connection to the pool, or closes it after an error.
    pub(crate) fn finish<T>(mut self, outcome: Result<T, Failure>) -> Result<T, Failure> {
        match &outcome {
            Ok(_) => drop(self.client.take()),
            Err(_) => drop(CloseOnDrop(self.client.take())),
        }
        outcome
    }
}

impl Drop for PooledConnection {
    fn drop(&mut self) {
        let Some(client) = self.client.take() else { return };
        let (mut closing, timeout) = (CloseOnDrop(Some(client)), self.timeout);
        let Ok(runtime) = Handle::try_current() else { return };
        runtime.spawn(async move {
            let Some(client) = &closing.0 else { return };
            if let Ok(Ok(())) = tokio::time::timeout(timeout, client.batch_execute("ROLLBACK")).await {
                drop(closing.0.take());
            }
        });
    }
}

impl Deref for PooledConnection {
    type Target = ClientWrapper;

    #[allow(clippy::expect_used, reason = "it is none only in drop and after, which end it")]
    fn deref(&self) -> &ClientWrapper {
        self.client.as_deref().expect("a connection")
    }
}

/// Closing also ends an open transaction.
struct CloseOnDrop(Option<Client>);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        if let Some(client) = self.0.take() {
            drop(Client::take(client));
        }
    }
}
