//! The connection that all commands of a state share. It is made anew, by the next command, after any trouble.
//!
//! A connection that did not answer in time is given up, too: the server may have vanished without a word, and then
//! nothing else would tell for minutes. A command is sent once; what became of it is for the caller to find out.

use std::{
    fmt,
    future::Future,
    io,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use futures::{
    FutureExt,
    future::{BoxFuture, Shared},
};
use interval_queue_contract::{StateError, StateErrorKind};
use redis::{RedisResult, Value};
use tokio::time;

use crate::{
    address::Address,
    dialer::{Connection, Dialer},
    error,
    request::Request,
    watch::Watching,
};

/// One attempt to connect, shared by all commands that wait for it, and its outcome.
type Attempt = Shared<BoxFuture<'static, RedisResult<Connection>>>;

pub(crate) struct Link {
    address: Address,
    dialer: Dialer,
    timeout: Duration,
    attempt: Mutex<Attempt>,
}

impl Link {
    /// A link that connects at the first command.
    ///
    /// # Errors
    ///
    /// [`Invalid`](StateErrorKind::Invalid): the address cannot be used.
    pub(crate) fn new(address: Address, timeout: Duration) -> Result<Self, StateError> {
        let dialer = Dialer::new(&address)?;
        let attempt = Mutex::new(attempt(&dialer, timeout));
        Ok(Self { address, dialer, timeout, attempt })
    }

    /// Connects, unless it is connected.
    ///
    /// # Errors
    ///
    /// [`Unreachable`](StateErrorKind::Unreachable) or [`Denied`](StateErrorKind::Denied).
    pub(crate) async fn connect(&self) -> Result<(), StateError> {
        self.connection().await.map(|_| ())
    }

    /// Watches at the same place.
    pub(crate) fn watching(&self) -> Watching {
        Watching::new(self.address.clone(), self.dialer.clone(), self.timeout)
    }

    /// Runs a script, by its source if the server does not know it.
    ///
    /// # Errors
    ///
    /// Those of [`talk`](Self::talk).
    pub(crate) async fn run(&self, request: &Request<'_>, keys: &[String; 2]) -> Result<Value, StateError> {
        let by_hash = |mut connection: Connection| async move {
            let command = request.by_hash(keys, connection.server());
            connection.send(&command).await
        };
        let by_source = |mut connection: Connection| async move {
            let command = request.by_source(keys, connection.server());
            connection.send(&command).await
        };
        match self.talk(by_hash).await? {
            Err(error) if error::is_no_script(&error) => {
                tracing::debug!(redis = %self.address, "the server does not know the script: sending its source");
                self.talk(by_source).await?
            }
            answer => answer,
        }
        .map_err(error::of_command)
    }

    /// Uses the connection for as long as a command may take. The outer error says that there was no connection or no
    /// answer, the inner one is the server's.
    ///
    /// # Errors
    ///
    /// [`Unreachable`](StateErrorKind::Unreachable) or [`Denied`](StateErrorKind::Denied): nothing was sent.
    /// [`TimedOut`](StateErrorKind::TimedOut): it may have happened.
    pub(crate) async fn talk<T, F>(
        &self,
        with: impl FnOnce(Connection) -> F,
    ) -> Result<RedisResult<T>, StateError>
    where
        F: Future<Output = RedisResult<T>>,
    {
        let (attempt, connection) = self.connection().await?;
        match time::timeout(self.timeout, with(connection)).await {
            Ok(answer) => {
                if let Err(error) = &answer
                    && error::ends_connection(error)
                {
                    tracing::warn!(redis = %self.address, %error, "lost the connection");
                    self.hang_up(&attempt);
                }
                Ok(answer)
            }
            Err(elapsed) => {
                let message = format!(
                    "redis at {} did not answer within {:?}: the command may have happened",
                    self.address, self.timeout
                );
                tracing::warn!("{message}");
                self.hang_up(&attempt);
                Err(StateError::new(StateErrorKind::TimedOut, message).with_source(elapsed))
            }
        }
    }

    async fn connection(&self) -> Result<(Attempt, Connection), StateError> {
        let attempt = self.attempt.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match attempt.clone().await {
            Ok(connection) => Ok((attempt, connection)),
            Err(error) => {
                tracing::debug!(redis = %self.address, %error, "cannot connect");
                self.hang_up(&attempt);
                Err(error::of_dialing(error, &self.address))
            }
        }
    }

    /// Lets the next command connect anew, unless one did already.
    fn hang_up(&self, failed: &Attempt) {
        let mut current = self.attempt.lock().unwrap_or_else(PoisonError::into_inner);
        if current.ptr_eq(failed) {
            *current = attempt(&self.dialer, self.timeout);
        }
    }
}

/// An attempt that begins when somebody waits for it, and then goes on by itself.
fn attempt(dialer: &Dialer, timeout: Duration) -> Attempt {
    let dialer = dialer.clone();
    let dialing = async move { time::timeout(timeout, dialer.dial(timeout)).await };
    async {
        match tokio::spawn(dialing).await {
            Ok(Ok(connection)) => connection,
            Ok(Err(_)) => Err(io::Error::from(io::ErrorKind::TimedOut).into()),
            Err(cancelled) => Err(io::Error::other(cancelled).into()),
        }
    }
    .boxed()
    .shared()
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link")
            .field("address", &self.address)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}
