//! A Redis or Valkey as a place to keep things: how it is reached, how scripts run on it, how channels are
//! watched. It knows nothing of what is kept.

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
use self::{address::KNOWN, link::Link, watch::Desk};

/// A Redis or Valkey. Clones share one connection for all commands, which is made again after any trouble,
/// and one for all that is watched, which is there only meanwhile.
#[derive(Clone)]
pub struct RedisStore {
    link: Arc<Link>,
    desk: Desk,
    /// What all keys begin with.
    pub(crate) prefix: Arc<str>,
    /// How long the server keeps what nobody uses.
    pub(crate) idle_expiry: Duration,
    warning: Option<Arc<str>>,
}

impl RedisStore {
    /// A store at `url`, with the settings in it and others to change before it connects. The [crate] says
    /// which addresses there are.
    ///
    /// # Errors
    ///
    /// The URL cannot be used.
    pub fn builder(url: &str) -> Result<Builder, InvalidInput> {
        Builder::from_url(Url::parse(url, KNOWN)?)
    }

    /// Why the server may lose what is stored: it was set to evict keys when this store connected. Logged once then.
    pub fn warning(&self) -> Option<&str> {
        self.warning.as_deref()
    }
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStore").field("address", &self.link.dialer.address).finish_non_exhaustive()
    }
}
