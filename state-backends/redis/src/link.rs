//! The connection that all commands of a state share. The next command after any trouble makes it again.
//!
//! A connection that did not answer in time is given up, too: the server may have vanished without a word,
//! and then nothing else would tell for minutes. A command is sent once; what became of it is for the caller
//! to find out.
//!
//! So a server that is only busy must not look like one that vanished. Ten thousand shards that ask in the
//! same instant would make it so: the last of them would hear nothing in time, hang up on everybody, and all
//! would come back. Therefore commands take turns: only so many are under way at once, and the time for an
//! answer counts from the sending.

use std::{
    fmt,
    future::Future,
    io,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures::{
    FutureExt,
    future::{BoxFuture, Shared},
};
use interval_queue_contract::{StateError, StateErrorKind};
use redis::{RedisResult, Value};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time,
};

use crate::{
    address::Address,
    dialer::{Connection, Dialer},
    error,
    request::Request,
    watch::Watching,
};

/// How many commands may wait for their answers at once. Few enough that a server which does a hundredth of
/// what they usually do has answered them in time, many enough for its full rate over a round trip of ten
/// milliseconds.
const MOST_UNDER_WAY: usize = 256;
/// For how long a command waits until it can be sent, at least. A server that has vanished is noticed by
/// those before it and a dial that fails, so this is for one that answers; and it is less than a shard waits.
const PATIENCE: Duration = Duration::from_secs(6);

/// One attempt to connect, shared by all commands that wait for it, and its outcome.
type Attempt = Shared<BoxFuture<'static, RedisResult<Connection>>>;

pub(crate) struct Link {
    address: Address,
    dialer: Dialer,
    timeout: Duration,
    call: Mutex<Call>,
}

/// A connection that is being made or was, and the turns on it.
#[derive(Clone)]
struct Call {
    attempt: Attempt,
    /// Closed once it is given up: those who wait for a turn go on to the next one.
    turns: Arc<Semaphore>,
}

/// Leave to send a command, and then another in its place.
struct Turn {
    call: Call,
    connection: Connection,
    _permit: OwnedSemaphorePermit,
}

impl Link {
    /// A link that connects at the first command.
    ///
    /// # Errors
    ///
    /// [`Invalid`](StateErrorKind::Invalid): the address cannot be used.
    pub(crate) fn new(address: Address, timeout: Duration) -> Result<Self, StateError> {
        let dialer = Dialer::new(&address)?;
        let call = Mutex::new(Call::new(&dialer, timeout));
        Ok(Self { address, dialer, timeout, call })
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
        // A command that has to send the source does so at once: behind all who wait, each of them would have
        // to.
        let turn = self.turn().await?;
        match self.talk_in(&turn, by_hash).await? {
            Err(error) if error::is_no_script(&error) => {
                tracing::debug!(redis = %self.address, "the server does not know the script: sending its source");
                self.talk_in(&turn, by_source).await?
            }
            answer => answer,
        }
        .map_err(error::of_command)
    }

    /// Uses the connection for as long as a command may take. The outer error says that there was no
    /// connection or no answer, the inner one is the server's.
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
        let turn = self.turn().await?;
        self.talk_in(&turn, with).await
    }

    async fn talk_in<T, F>(
        &self,
        turn: &Turn,
        with: impl FnOnce(Connection) -> F,
    ) -> Result<RedisResult<T>, StateError>
    where
        F: Future<Output = RedisResult<T>>,
    {
        match time::timeout(self.timeout, with(turn.connection.clone())).await {
            Ok(answer) => {
                if let Err(error) = &answer
                    && error::ends_connection(error)
                {
                    tracing::warn!(redis = %self.address, %error, "lost the connection");
                    self.hang_up(&turn.call);
                }
                Ok(answer)
            }
            Err(elapsed) => {
                let message = format!(
                    "redis at {} did not answer within {:?}: the command may have happened",
                    self.address, self.timeout
                );
                tracing::warn!("{message}");
                self.hang_up(&turn.call);
                Err(StateError::new(StateErrorKind::TimedOut, message).with_source(elapsed))
            }
        }
    }

    /// Waits until a command may be sent.
    async fn turn(&self) -> Result<Turn, StateError> {
        let patience = self.timeout.saturating_mul(3).max(PATIENCE);
        let turn = async {
            loop {
                let (call, connection) = self.connection().await?;
                // Nothing was sent yet: a connection that was given up meanwhile is no reason to fail.
                if let Ok(_permit) = call.turns.clone().acquire_owned().await {
                    return Ok(Turn { call, connection, _permit });
                }
            }
        };
        time::timeout(patience, turn).await.unwrap_or_else(|elapsed| {
            let message = format!(
                "redis at {} was busy with other commands of this process for {patience:?}: nothing was sent",
                self.address
            );
            tracing::warn!("{message}");
            Err(StateError::new(StateErrorKind::Unreachable, message).with_source(elapsed))
        })
    }

    async fn connection(&self) -> Result<(Call, Connection), StateError> {
        let call = self.call.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match call.attempt.clone().await {
            Ok(connection) => Ok((call, connection)),
            Err(error) => {
                tracing::debug!(redis = %self.address, %error, "cannot connect");
                self.hang_up(&call);
                Err(error::of_dialing(error, &self.address))
            }
        }
    }

    /// Lets the next command connect again, unless one did already.
    fn hang_up(&self, failed: &Call) {
        let mut current = self.call.lock().unwrap_or_else(PoisonError::into_inner);
        if current.attempt.ptr_eq(&failed.attempt) {
            *current = Call::new(&self.dialer, self.timeout);
            failed.turns.close();
        }
    }
}

impl Call {
    fn new(dialer: &Dialer, timeout: Duration) -> Self {
        Self { attempt: attempt(dialer, timeout), turns: Arc::new(Semaphore::new(MOST_UNDER_WAY)) }
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
