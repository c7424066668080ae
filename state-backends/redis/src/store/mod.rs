//! A Redis or Valkey as a store: connections, scripts and watched channels, whatever their content.

pub(crate) mod address;
mod builder;
mod dialer;
pub(crate) mod error;
mod eviction;
mod keeper;
mod link;
pub(crate) mod scan;
mod script;
mod watch;

use std::{fmt, sync::Arc, time::Duration};

use interval_queue_contract::InvalidInput;
use interval_queue_store::Url;

pub use self::builder::Builder;
pub(crate) use self::script::{Library, Script};
use self::{address::KNOWN_SCHEMES, link::Link, watch::KeeperHandle};

/// A Redis or Valkey. Clones share one connection for all commands, which is replaced after an
/// error, and one for all watched channels, which exists only while one is watched.
#[derive(Clone)]
pub struct RedisStore {
    link: Arc<Link>,
    keeper: KeeperHandle,
    pub(crate) prefix: Arc<str>,
    pub(crate) idle_expiry: Duration,
    warning: Option<Arc<str>>,
}

impl RedisStore {
    /// Options of a store at `url`, with the settings in it. The [crate] lists the addresses.
    ///
    /// # Errors
    ///
    /// The URL cannot be used.
    pub fn builder(url: &str) -> Result<Builder, InvalidInput> {
        Builder::from_url(Url::parse(url, KNOWN_SCHEMES)?)
    }

    /// Why the server may lose stored keys: it was set to evict keys when this store connected.
    /// Logged once at that time.
    pub fn warning(&self) -> Option<&str> {
        self.warning.as_deref()
    }
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStore").field("address", &self.link.dialer.address).finish_non_exhaustive()
    }
}
