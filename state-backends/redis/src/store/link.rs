//! The connection that all commands share. After an error or a timeout it is closed, and the next
//! command reconnects: nothing else shows for minutes that a server has vanished silently. A
//! command is sent once; the caller must find out whether it was carried out.
//!
//! A busy server must not look like one that vanished. If ten thousand shards sent at once, the
//! last would time out and close the shared connection, and all would reconnect. So a command needs
//! a permit to be sent, permits are limited, and the timeout counts from the sending. The client
//! library's limit belongs to a connection: waiting commands are still sent on a silent one,
//! without showing that they were not sent.

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

/// Few enough that a server at a hundredth of its usual speed answers in time; many enough for its
/// full rate over a round trip of ten milliseconds.
const MAX_IN_FLIGHT: usize = 256;
/// Earlier commands and a failing dial detect a vanished server, so this applies to one that
/// answers. It is shorter than the wait of a shard.
const MIN_PERMIT_TIMEOUT: Duration = Duration::from_secs(6);

/// Shared by all commands that wait for the attempt.
type Attempt = Shared<BoxFuture<'static, RedisResult<Connection>>>;

pub(super) struct Link {
    pub(super) dialer: Arc<Dialer>,
    attempt: Mutex<Attempt>,
    permits: Semaphore,
}

/// Sends commands one after the other.
pub(super) struct SendPermit<'a> {
    link: &'a Link,
    attempt: Attempt,
    connection: Connection,
    timeout: Duration,
    _permit: Option<SemaphorePermit<'a>>,
}

impl Link {
    /// Connects at the first command.
    pub(super) fn new(dialer: Dialer) -> Self {
        let dialer = Arc::new(dialer);
        let attempt = Mutex::new(attempt(&dialer));
        Self { dialer, attempt, permits: Semaphore::new(MAX_IN_FLIGHT) }
    }

    /// # Errors
    ///
    /// [`Unreachable`](StateErrorKind::Unreachable) or [`Denied`](StateErrorKind::Denied).
    pub(super) async fn connect(&self) -> Result<(), StateError> {
        self.connection().await.map(drop)
    }

    /// `node` is for clusters; `None`: the key decides.
    ///
    /// # Errors
    ///
    /// The errors of [`permit`](Self::permit), of [`SendPermit::send`] and of the server.
    pub(super) async fn request(&self, command: &Cmd, node: Option<&Host>) -> Result<Value, StateError> {
        self.permit().await?.send(command, node).await?.map_err(error::of_command)
    }

    /// # Errors
    ///
    /// [`Unreachable`](StateErrorKind::Unreachable) or [`Denied`](StateErrorKind::Denied): nothing
    /// was sent.
    pub(super) async fn permit(&self) -> Result<SendPermit<'_>, StateError> {
        let permit_timeout = self.dialer.timeout.saturating_mul(3).max(MIN_PERMIT_TIMEOUT);
        let permit = async {
            self.connect().await?;
            // The semaphore is never closed.
            let _permit = self.permits.acquire().await.ok();
            // Nothing was sent yet: a connection closed meanwhile is replaced.
            let (attempt, connection) = self.connection().await?;
            Ok(SendPermit { link: self, attempt, connection, timeout: self.dialer.timeout, _permit })
        };
        time::timeout(permit_timeout, permit).await.unwrap_or_else(|elapsed| {
            let message = format!(
                "redis at {} was busy with other commands of this process for {permit_timeout:?}: nothing was sent",
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
                self.close(&attempt);
                Err(error::of_dialing(error, &self.dialer.address))
            }
        }
    }

    /// Closes a failed connection, unless another command has replaced it.
    fn close(&self, failed: &Attempt) {
        let mut current = self.attempt.lock().unwrap_or_else(PoisonError::into_inner);
        if current.ptr_eq(failed) {
            *current = attempt(&self.dialer);
        }
    }
}

impl SendPermit<'_> {
    pub(super) fn server(&self) -> &str {
        self.connection.server()
    }

    pub(super) fn wait_at_least(&mut self, timeout: Duration) {
        self.timeout = self.timeout.max(timeout);
    }

    /// The outer error means that there was no answer, the inner error is the server's.
    ///
    /// # Errors
    ///
    /// [`TimedOut`](StateErrorKind::TimedOut): it may have been carried out.
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
                    self.link.close(&self.attempt);
                }
                Ok(answer)
            }
            Err(elapsed) => {
                let message = format!(
                    "redis at {address} did not answer within {timeout:?}: the command may have happened"
                );
                tracing::warn!("{message}");
                self.link.close(&self.attempt);
                Err(StateError::new(StateErrorKind::TimedOut, message).with_source(elapsed))
            }
        }
    }
}

/// Starts with the first poll, and then continues by itself.
fn attempt(dialer: &Arc<Dialer>) -> Attempt {
    let dialer = dialer.clone();
    let dialing = async move { dialer.dial().await };
    async { tokio::spawn(dialing).await.unwrap_or_else(|cancelled| Err(io::Error::other(cancelled).into())) }
        .boxed()
        .shared()
}
