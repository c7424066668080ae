//! Connections, lent for one command each.

use std::{ops::Deref, time::Duration};

use deadpool_postgres::{Client, ClientWrapper, Pool, PoolError};

use crate::error::{self, Trouble};

/// A pool, and how long its users are patient.
#[derive(Clone)]
pub(crate) struct Connections {
    pool: Pool,
    pub(crate) timeout: Duration,
}

impl Connections {
    pub(crate) fn new(pool: Pool, timeout: Duration) -> Self {
        Self { pool, timeout }
    }

    /// One that was not used by others at the same time, once there is one.
    pub(crate) async fn lend(&self) -> Result<Lent, Trouble> {
        // The pool of an application may know no time-outs.
        match tokio::time::timeout(self.timeout * 4, self.pool.get()).await {
            Ok(Ok(client)) => Ok(Lent(Some(client))),
            Ok(Err(PoolError::Backend(error))) => Err(error::of_dialing(error)),
            Ok(Err(error)) => Err(error::no_connection(error.to_string())),
            Err(_) => Err(error::no_connection("the pool gave none")),
        }
    }

    /// What the server answers to one round trip, which stores nothing.
    pub(crate) async fn ask<T>(
        &self,
        trip: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, Trouble> {
        match tokio::time::timeout(self.timeout, trip).await {
            Ok(answer) => answer.map_err(error::of_question),
            Err(_) => Err(error::no_answer()),
        }
    }

    /// What the server answers to a round trip that ends in a commit.
    pub(crate) async fn commit<T>(
        &self,
        trip: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, Trouble> {
        match tokio::time::timeout(self.timeout, trip).await {
            Ok(answer) => answer.map_err(error::of_commit),
            Err(_) => Err(error::indeterminate(None).into()),
        }
    }
}

/// A connection. It is closed, and with it goes whatever transaction it has, unless it is given back.
pub(crate) struct Lent(Option<Client>);

impl Lent {
    /// To be called when no transaction is open.
    pub(crate) fn give_back(mut self) {
        self.0 = None;
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let Some(client) = self.0.take() {
            drop(Client::take(client));
        }
    }
}

impl Deref for Lent {
    type Target = ClientWrapper;

    #[allow(clippy::expect_used, reason = "it is none only in drop and give_back, which end it")]
    fn deref(&self) -> &ClientWrapper {
        self.0.as_deref().expect("a connection")
    }
}
