//! Connections, lent for one transaction each.

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
    /// One that was not used by others at the same time, once there is one.
    pub(super) async fn acquire(&self) -> Result<PooledConnection, Failure> {
        let (server_name, timeout) = (&self.server_name, self.timeout);
        // The pool of an application may know no time-outs.
        match tokio::time::timeout(timeout * 4, self.pool.get()).await {
            Ok(Ok(client)) => Ok(PooledConnection { client: Some(client), timeout, preparing: None }),
            Ok(Err(PoolError::Backend(error))) => Err(error::of_connect(error, server_name)),
            Ok(Err(error)) => Err(error::no_connection(server_name, &pool_failure(&error))),
            Err(_) => Err(error::no_connection(server_name, "the pool gave none")),
        }
    }

    /// What the server answers to one question, in one round trip: a transaction, so that the server does not
    /// wait longer for a lock on a table than this does for the server.
    pub(super) async fn read(&self, statement: &Statement<'_>) -> Result<Vec<Row>, Failure> {
        let (on, parameters) = (self.acquire().await?, statement.parameters());
        let rows = on.query_typed(statement.sql, &parameters);
        let read = try_join3(on.batch_execute(&self.begin), rows, on.batch_execute("COMMIT"));
        let read = on.round_trip(read).await.map(|((), rows, ())| rows);
        on.finish(read)
    }
}

/// Why a pool gave no connection, for people.
fn pool_failure(error: &PoolError) -> Cow<'static, str> {
    match error {
        PoolError::Timeout(TimeoutType::Create | TimeoutType::Recycle) => "the server does not answer".into(),
        PoolError::Timeout(TimeoutType::Wait) => "all are in use".into(),
        error => error.to_string().into(),
    }
}

/// A connection. If this is dropped in the middle of something, the connection serves others once the server
/// is done with that and has rolled it back: until then it counts, so that the server never has more of them
/// than the pool may.
pub(crate) struct PooledConnection {
    client: Option<Client>,
    timeout: Duration,
    preparing: Option<Preparation>,
}

/// Where statements are prepared.
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
    /// From now on statements that are said again and again are prepared, unless a pooler is known to mix them up.
    pub(super) fn prepare(&mut self, sessions: &Arc<Sessions>) {
        let session = sessions.of(self);
        self.preparing = session.map(|session| Preparation { sessions: sessions.clone(), session });
    }

    /// Asks, by what is prepared if there is something.
    pub(crate) async fn fetch(&self, query: &Query) -> Result<Vec<Row>, Error> {
        if let Some(preparing) = &self.preparing
            && let Some(statement) = preparing.session.statement(query)
        {
            return preparing.note_mix_up(self.query(&statement, &query.values()).await);
        }
        self.query_typed(&query.sql, &query.parameters()).await
    }

    /// The process of the server, as the beginning of the transaction has told it, if it is the one that has what was
    /// prepared. If not, the transaction must not go on. None: nothing is prepared, so it may be anywhere.
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

    /// Carries these out and commits, in one round trip, with which it prepares what is often said. The
    /// session has to be the one where things were prepared, in this process. The notification follows the commit in
    /// the same message, so that the server is ready only after both: PgBouncer takes a connection that is ready for
    /// idle, and if its client leaves then, it gives the connection to others with the answer that is still to come.
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
        // They are sent in this order.
        let (.., mut answers) = self.commit(try_join4(prepared, marked, stored, committing)).await?;
        if let (Some(preparing), Some(process)) = (&self.preparing, process) {
            preparing.session.mark(process);
        }
        // It is committed, whatever becomes of the notification.
        let rest = async { while let Ok(Some(_)) = answers.try_next().await {} };
        let _ = tokio::time::timeout(self.timeout, rest).await;
        Ok(())
    }

    /// Sends a commit and what follows it, and waits until it is committed. The rest of the answer is to be read.
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

    /// Ends a transaction that has stored nothing. The answer is not waited for: what is sent next comes behind it.
    pub(crate) fn end(&self, statement: &str) {
        drop(self.batch_execute(statement).now_or_never());
    }

    /// Waits for each answer for this time, at least.
    pub(crate) fn extend_timeout(&mut self, timeout: Duration) {
        self.timeout = self.timeout.max(timeout);
    }

    /// What the server answers to one round trip, which stores nothing.
    pub(crate) async fn round_trip<T>(
        &self,
        trip: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Failure> {
        match tokio::time::timeout(self.timeout, trip).await {
            Ok(answer) => answer.map_err(error::of_query),
            Err(_) => Err(error::no_answer()),
        }
    }

    /// What the server answers to a round trip that ends in a commit.
    pub(crate) async fn commit<T>(&self, trip: impl Future<Output = Result<T, Error>>) -> Result<T, Failure> {
        match tokio::time::timeout(self.timeout, trip).await {
            Ok(answer) => answer.map_err(error::of_commit),
            Err(_) => Err(error::indeterminate(None).into()),
        }
    }

    /// To be called at the end: the connection serves others, or is closed if there was trouble with it.
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

/// A connection that is closed when this is dropped, and with it goes whatever transaction it has.
struct CloseOnDrop(Option<Client>);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        if let Some(client) = self.0.take() {
            drop(Client::take(client));
        }
    }
}
