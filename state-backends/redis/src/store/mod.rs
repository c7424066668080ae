//! A Redis or Valkey as a place to keep things: how it is reached, how scripts run on it, how channels are
//! watched. It knows nothing of what is kept.

pub(crate) mod address;
mod builder;
mod dialer;
pub(crate) mod error;
mod keeper;
mod link;
pub(crate) mod scan;
mod script;
mod watch;

use std::{collections::BTreeSet, fmt, sync::Arc, time::Duration};

use futures::stream::BoxStream;
use interval_queue_contract::{InvalidInput, StateError};
use redis::Value;

pub use self::builder::Builder;
pub(crate) use self::script::Script;
use self::{dialer::Dialer, link::Link, watch::Watching};

/// A Redis or Valkey. Clones share one connection for all commands, which is made again after any trouble,
/// and one for all that is watched, which is there only meanwhile.
#[derive(Clone)]
pub struct RedisStore {
    link: Arc<Link>,
    watching: Watching,
    prefix: Arc<str>,
    idle_expiry: Duration,
}

impl RedisStore {
    /// A store at `url`, with the settings in it and others to change before it connects. The [crate] says
    /// which addresses there are.
    ///
    /// # Errors
    ///
    /// The URL cannot be used.
    pub fn builder(url: &str) -> Result<Builder, InvalidInput> {
        Builder::parse(url)
    }

    fn new(dialer: Dialer, prefix: &str, idle_expiry: Duration) -> Self {
        let dialer = Arc::new(dialer);
        Self {
            link: Arc::new(Link::new(dialer.clone())),
            watching: Watching::new(dialer),
            prefix: prefix.into(),
            idle_expiry,
        }
    }

    /// What all keys begin with.
    pub(crate) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// How long the server keeps what nobody uses.
    pub(crate) fn idle_expiry(&self) -> Duration {
        self.idle_expiry
    }

    /// Runs a script with these arguments, behind the name of the server.
    ///
    /// # Errors
    ///
    /// [`TimedOut`](interval_queue_contract::StateErrorKind::TimedOut): it may have happened. With any other
    /// error it has not.
    pub(crate) async fn run(
        &self,
        script: &Script,
        keys: &[String],
        arguments: &[impl AsRef<[u8]>],
    ) -> Result<Value, StateError> {
        self.link.run(script, keys, arguments).await
    }

    /// All keys that match a pattern of `SCAN`, but those that are no text.
    ///
    /// # Errors
    ///
    /// The server does not say.
    pub(crate) async fn keys(&self, pattern: &str) -> Result<BTreeSet<String>, StateError> {
        scan::keys(&self.link, pattern).await
    }

    /// An item for what is said on a channel from now on, and after any trouble in which something may have
    /// been missed.
    ///
    /// # Errors
    ///
    /// The server cannot be reached, or the user has no right to the channel.
    pub(crate) async fn watch(&self, channel: String) -> Result<BoxStream<'static, ()>, StateError> {
        self.watching.watch(channel).await
    }
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStore").field("address", self.link.address()).finish_non_exhaustive()
    }
}
