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
    address::Host,
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
    pub(super) dialer: Arc<Dialer>,
    attempt: Mutex<Attempt>,
    turns: Semaphore,
}

/// Leave to send a command, and then another in its place.
pub(super) struct Turn<'a> {
    link: &'a Link,
    attempt: Attempt,
    connection: Connection,
    timeout: Duration,
    _permit: Option<SemaphorePermit<'a>>,
}

impl Link {
    /// A link that connects at the first command.
    pub(super) fn new(dialer: Dialer) -> Self {
        let dialer = Arc::new(dialer);
        let attempt = Mutex::new(attempt(&dialer));
        Self { dialer, attempt, turns: Semaphore::new(MOST_UNDER_WAY) }
    }

    /// Connects, unless it is connected.
    ///
    /// # Errors
    ///
    /// [`Unreachable`](StateErrorKind::Unreachable) or [`Denied`](StateErrorKind::Denied).
    pub(super) async fn connect(&self) -> Result<(), StateError> {
        self.connection().await.map(drop)
    }

    /// Sends a command, to this node of a cluster if one is named.
    ///
    /// # Errors
    ///
    /// Those of [`turn`](Self::turn), of [`Turn::send`] and the server's.
    pub(super) async fn ask(&self, command: &Cmd, node: Option<&Host>) -> Result<Value, StateError> {
        self.turn().await?.send(command, node).await?.map_err(error::of_command)
    }

    /// Waits until a command may be sent.
    ///
    /// # Errors
    ///
    /// [`Unreachable`](StateErrorKind::Unreachable) or [`Denied`](StateErrorKind::Denied): nothing was sent.
    pub(super) async fn turn(&self) -> Result<Turn<'_>, StateError> {
        let patience = self.dialer.timeout.saturating_mul(3).max(PATIENCE);
        let turn = async {
            self.connect().await?;
            // It is never closed.
            let _permit = self.turns.acquire().await.ok();
            // Nothing was sent yet: a connection that was given up meanwhile is no reason to fail.
            let (attempt, connection) = self.connection().await?;
            Ok(Turn { link: self, attempt, connection, timeout: self.dialer.timeout, _permit })
        };
        time::timeout(patience, turn).await.unwrap_or_else(|elapsed| {
            let message = format!(
                "redis at {} was busy with other commands of this process for {patience:?}: nothing was sent",
                self.dialer.address
            );
            tracing::warn!("{message}");
            Err(StateError::new(StateErrorKind::Unreachable, message).with_source(elapsed).without_effect())
        })
    }

    async fn connection(&self) -> Result<(Attempt, Connection), StateError> {
        let attempt = self.attempt.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match attempt.clone().await {
            Ok(connection) => Ok((attempt, connection)),
            Err(error) => {
                tracing::debug!(redis = %self.dialer.address, %error, "cannot connect");
                self.hang_up(&attempt);
                Err(error::of_dialing(error, &self.dialer.address))
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

impl Turn<'_> {
    /// The name of the server, as [`Connection::server`] has it.
    pub(super) fn server(&self) -> &str {
        self.connection.server()
    }

    /// Waits for each answer for this time, at least.
    pub(super) fn wait_at_least(&mut self, timeout: Duration) {
        self.timeout = self.timeout.max(timeout);
    }

    /// Sends a command. The outer error says that there was no answer, the inner one is the server's.
    ///
    /// # Errors
    ///
    /// [`TimedOut`](StateErrorKind::TimedOut): it may have happened.
    pub(super) async fn send(
        &mut self,
        command: &Cmd,
        node: Option<&Host>,
    ) -> Result<RedisResult<Value>, StateError> {
        let (address, timeout) = (&self.link.dialer.address, self.timeout);
        match time::timeout(timeout, self.connection.send(command, node)).await {
            Ok(answer) => {
                if let Err(error) = &answer
                    && error::ends_connection(error)
                {
                    tracing::warn!(redis = %address, %error, "lost the connection");
                    self.link.hang_up(&self.attempt);
                }
                Ok(answer)
            }
            Err(elapsed) => {
                let message = format!(
                    "redis at {address} did not answer within {timeout:?}: the command may have happened"
                );
                tracing::warn!("{message}");
                self.link.hang_up(&self.attempt);
                Err(StateError::new(StateErrorKind::TimedOut, message).with_source(elapsed))
            }
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
