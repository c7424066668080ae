//! The connection that all commands of a state share. It is made anew, by the next command, after any trouble.
//!
//! A connection that did not answer in time is given up, too: the server may have vanished without a word, and then
//! nothing else would tell for minutes. A command is sent once; what became of it is for the caller to find out.

use std::{
    fmt,
    future::Future,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use futures::{
    FutureExt,
    future::{BoxFuture, Shared},
};
use interval_queue_contract::{StateError, StateErrorKind};
use redis::{Cmd, RedisResult, Value};
use tokio::time;

use crate::{
    address::Address,
    dialer::{Connection, Dialer},
    error,
    script::Script,
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
        let dialer = Dialer::new(&address, timeout)?;
        let attempt = Mutex::new(attempt(&dialer, timeout));
        Ok(Self {
            address,
            dialer,
            timeout,
            attempt,
        })
    }

    /// Connects, unless it is connected.
    ///
    /// # Errors
    ///
    /// [`Unreachable`](StateErrorKind::Unreachable) or [`Denied`](StateErrorKind::Denied).
    pub(crate) async fn connect(&self) -> Result<(), StateError> {
        self.connection().await.map(|_| ())
    }

    /// Runs a script, by its source if the server does not know it.
    pub(crate) async fn run(&self, script: &Script, keys: &[String; 4], args: &[String]) -> Result<Value, StateError> {
        let by_hash = script.by_hash(keys, args);
        let answer = self.exchange(async |connection: &mut Connection| connection.send(&by_hash).await).await?;
        match answer {
            Err(error) if error::is_no_script(&error) => {
                let by_source = script.by_source(keys, args);
                self.exchange(async |connection: &mut Connection| connection.send(&by_source).await).await?
            }
            answer => answer,
        }
        .map_err(error::of_command)
    }

    /// Sends commands that only look.
    pub(crate) async fn ask<T>(
        &self,
        question: impl AsyncFnOnce(&mut Connection) -> RedisResult<T>,
    ) -> Result<T, StateError> {
        self.exchange(question).await?.map_err(error::of_command)
    }
}
