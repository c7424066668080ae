//! The connection that all commands share. The next command after any trouble makes it again.
//!
//! A connection that did not answer in time is given up, too: the server may have vanished without a word,
//! and then nothing else would tell for minutes. A command is sent once; what became of it is for the caller
//! to find out.
//!
//! So a server that is only busy must not look like one that vanished. Ten thousand shards that ask in the
//! same instant would make it so: the last of them would hear nothing in time, hang up on everybody, and all
//! would come back. Therefore commands take turns: only so many are under way at once, and the time for an
//! answer counts from the sending.
//!
//! The limit of the client library cannot do that. It belongs to a connection: commands that wait for one
//! that fell silent are sent on it all the same, each in vain, and cannot tell that they were not sent.

use std::{
    io,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures::{
    FutureExt,
    future::{BoxFuture, Shared},
};
use interval_queue_contract::{StateError, StateErrorKind};
use redis::{Cmd, RedisResult, Value};
use tokio::{
    sync::{Semaphore, SemaphorePermit},
    time,
};

use super::{
    Script,
    address::{Address, Host},
    dialer::{Connection, Dialer},
    error,
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

pub(super) struct Link {
    dialer: Arc<Dialer>,
    attempt: Mutex<Attempt>,
    turns: Semaphore,
}

/// Leave to send a command, and then another in its place.
struct Turn<'a> {
    attempt: Attempt,
    connection: Connection,
    _permit: Option<SemaphorePermit<'a>>,
}

impl Link {
    /// A link that connects at the first command.
    pub(super) fn new(dialer: Arc<Dialer>) -> Self {
        let attempt = Mutex::new(attempt(&dialer));
        Self { dialer, attempt, turns: Semaphore::new(MOST_UNDER_WAY) }
    }

    pub(super) fn address(&self) -> &Address {
        &self.dialer.address
    }

    /// Connects, unless it is connected.
    ///
    /// # Errors
    ///
    /// [`Unreachable`](StateErrorKind::Unreachable) or [`Denied`](StateErrorKind::Denied).
    pub(super) async fn connect(&self) -> Result<(), StateError> {
        self.connection().await.map(drop)
    }

    /// Runs a script, by its source if the server does not know it.
    ///
    /// # Errors
    ///
    /// Those of [`ask`](Self::ask).
    pub(super) async fn run(
        &self,
        script: &Script,
        keys: &[String],
        arguments: &[impl AsRef<[u8]>],
    ) -> Result<Value, StateError> {
        // A command that has to send the source does so at once: behind all that wait, each of them would have
        // to.
        let mut turn = self.turn().await?;
        let by_hash = script.by_hash(turn.connection.server(), keys, arguments);
        match self.send(&mut turn, &by_hash, None).await? {
            Err(error) if error::is_no_script(&error) => {
                let redis = self.address();
                tracing::debug!(%redis, "the server does not know the script: sending its source");
                let by_source = script.by_source(turn.connection.server(), keys, arguments);
                self.send(&mut turn, &by_source, None).await?
            }
            answer => answer,
        }
        .map_err(error::of_command)
    }

    /// Sends a command, to this node of a cluster if one is named.
    ///
    /// # Errors
    ///
    /// [`Unreachable`](StateErrorKind::Unreachable) or [`Denied`](StateErrorKind::Denied): nothing was sent.
    /// [`TimedOut`](StateErrorKind::TimedOut): it may have happened. Others are the server's.
    pub(super) async fn ask(&self, command: &Cmd, node: Option<&Host>) -> Result<Value, StateError> {
        let mut turn = self.turn().await?;
        self.send(&mut turn, command, node).await?.map_err(error::of_command)
    }

    /// The outer error says that there was no answer, the inner one is the server's.
    async fn send(
        &self,
        turn: &mut Turn<'_>,
        command: &Cmd,
        node: Option<&Host>,
    ) -> Result<RedisResult<Value>, StateError> {
        let (redis, timeout) = (self.address(), self.dialer.timeout);
        match time::timeout(timeout, turn.connection.send(command, node)).await {
            Ok(answer) => {
                if let Err(error) = &answer
                    && error::ends_connection(error)
                {
                    tracing::warn!(%redis, %error, "lost the connection");
                    self.hang_up(&turn.attempt);
                }
                Ok(answer)
            }
            Err(elapsed) => {
                let message = format!(
                    "redis at {redis} did not answer within {timeout:?}: the command may have happened"
                );
                tracing::warn!("{message}");
                self.hang_up(&turn.attempt);
                Err(StateError::new(StateErrorKind::TimedOut, message).with_source(elapsed))
            }
        }
    }

    /// Waits until a command may be sent.
    async fn turn(&self) -> Result<Turn<'_>, StateError> {
        let patience = self.dialer.timeout.saturating_mul(3).max(PATIENCE);
        let turn = async {
            self.connect().await?;
            // It is never closed.
            let _permit = self.turns.acquire().await.ok();
            // Nothing was sent yet: a connection that was given up meanwhile is no reason to fail.
            let (attempt, connection) = self.connection().await?;
            Ok(Turn { attempt, connection, _permit })
        };
        time::timeout(patience, turn).await.unwrap_or_else(|elapsed| {
            let message = format!(
                "redis at {} was busy with other commands of this process for {patience:?}: nothing was sent",
                self.address()
            );
            tracing::warn!("{message}");
            Err(StateError::new(StateErrorKind::Unreachable, message).with_source(elapsed))
        })
    }

    async fn connection(&self) -> Result<(Attempt, Connection), StateError> {
        let attempt = self.attempt.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match attempt.clone().await {
            Ok(connection) => Ok((attempt, connection)),
            Err(error) => {
                tracing::debug!(redis = %self.address(), %error, "cannot connect");
                self.hang_up(&attempt);
                Err(error::of_dialing(error, self.address()))
            }
        }
    }

    /// Lets the next command connect again, unless one did already.
    fn hang_up(&self, failed: &Attempt) {
        let mut current = self.attempt.lock().unwrap_or_else(PoisonError::into_inner);
        if current.ptr_eq(failed) {
            *current = attempt(&self.dialer);
        }
    }
}

/// An attempt that begins when somebody waits for it, and then goes on by itself.
fn attempt(dialer: &Arc<Dialer>) -> Attempt {
    let dialer = dialer.clone();
    let dialing = async move { dialer.dial().await };
    async { tokio::spawn(dialing).await.unwrap_or_else(|cancelled| Err(io::Error::other(cancelled).into())) }
        .boxed()
        .shared()
}
