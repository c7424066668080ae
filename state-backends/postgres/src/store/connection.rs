//! Connections, lent for one transaction each.

use std::{borrow::Cow, ops::Deref, time::Duration};

use deadpool_postgres::{Client, ClientWrapper, PoolError, TimeoutType};
use futures::future::try_join3;
use tokio::runtime::Handle;
use tokio_postgres::{Error, Row};

use super::{
    Inner,
    error::{self, Trouble},
    sql::Statement,
};

impl Inner {
    /// One that was not used by others at the same time, once there is one.
    pub(super) async fn lend(&self) -> Result<Lent, Trouble> {
        let (place, patience) = (&self.place, self.timeout);
        // The pool of an application may know no time-outs.
        match tokio::time::timeout(patience * 4, self.pool.get()).await {
            Ok(Ok(client)) => Ok(Lent { client: Some(client), patience }),
            Ok(Err(PoolError::Backend(error))) => Err(error::of_dialing(error, place)),
            Ok(Err(error)) => Err(error::no_connection(place, &why_none(&error))),
            Err(_) => Err(error::no_connection(place, "the pool gave none")),
        }
    }

    /// What the server answers to one question, in one round trip: a transaction, so that the server does not
    /// wait longer for a lock on a table than this does for the server.
    pub(super) async fn look(&self, question: &Statement<'_>) -> Result<Vec<Row>, Trouble> {
        let (on, parameters) = (self.lend().await?, question.parameters());
        let seen = on.query_typed(question.sql, &parameters);
        let looked = try_join3(on.batch_execute(&self.begin), seen, on.batch_execute("COMMIT"));
        let looked = on.ask(looked).await.map(|((), rows, ())| rows);
        on.after(looked)
    }
}

/// Why a pool gave no connection, for people.
fn why_none(error: &PoolError) -> Cow<'static, str> {
    match error {
        PoolError::Timeout(TimeoutType::Create | TimeoutType::Recycle) => "the server does not answer".into(),
        PoolError::Timeout(TimeoutType::Wait) => "all are in use".into(),
        error => error.to_string().into(),
    }
}

/// A connection. If this is dropped in the middle of something, the connection serves others once the server
/// is done with that and has rolled it back: until then it counts, so that the server never has more of them
/// than the pool may.
pub(super) struct Lent {
    client: Option<Client>,
    patience: Duration,
}

impl Lent {
    /// What the server answers to one round trip, which stores nothing.
    pub(super) async fn ask<T>(&self, trip: impl Future<Output = Result<T, Error>>) -> Result<T, Trouble> {
        match tokio::time::timeout(self.patience, trip).await {
            Ok(answer) => answer.map_err(error::of_question),
            Err(_) => Err(error::no_answer()),
        }
    }

    /// What the server answers to a round trip that ends in a commit.
    pub(super) async fn commit<T>(&self, trip: impl Future<Output = Result<T, Error>>) -> Result<T, Trouble> {
        match tokio::time::timeout(self.patience, trip).await {
            Ok(answer) => answer.map_err(error::of_commit),
            Err(_) => Err(error::indeterminate(None).into()),
        }
    }

    /// To be called at the end: the connection serves others, or is closed if there was trouble with it.
    pub(super) fn after<T>(mut self, outcome: Result<T, Trouble>) -> Result<T, Trouble> {
        match &outcome {
            Ok(_) => drop(self.client.take()),
            Err(_) => drop(Closing(self.client.take())),
        }
        outcome
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let Some(client) = self.client.take() else { return };
        let (mut closing, patience) = (Closing(Some(client)), self.patience);
        let Ok(runtime) = Handle::try_current() else { return };
        runtime.spawn(async move {
            let Some(client) = &closing.0 else { return };
            if let Ok(Ok(())) = tokio::time::timeout(patience, client.batch_execute("ROLLBACK")).await {
                drop(closing.0.take());
            }
        });
    }
}

impl Deref for Lent {
    type Target = ClientWrapper;

    #[allow(clippy::expect_used, reason = "it is none only in drop and after, which end it")]
    fn deref(&self) -> &ClientWrapper {
        self.client.as_deref().expect("a connection")
    }
}

/// A connection that is closed when this is dropped, and with it goes whatever transaction it has.
struct Closing(Option<Client>);

impl Drop for Closing {
    fn drop(&mut self) {
        if let Some(client) = self.0.take() {
            drop(Client::take(client));
        }
    }
}
