//! Options of a [`RedisStore`].

use std::{sync::Arc, time::Duration};

use interval_queue_contract::{InvalidInput, StateError};
use interval_queue_store::Url;

use super::{RedisStore, address::Address, dialer::Dialer, eviction, link::Link, watch::KeeperHandle};

const DAY: Duration = Duration::from_secs(24 * 3600);
/// An hour's lease and a year's hold then stay within the range of `PEXPIRE`.
const MAX_EXPIRY: Duration = DAY.saturating_mul(366);

/// Options of a [`RedisStore`], checked by [`connect`](Builder::connect).
#[derive(Clone, Debug)]
#[must_use = "call connect"]
pub struct Builder {
    address: Address,
    prefix: String,
    timeout: Duration,
    idle_expiry: Duration,
}

impl Builder {
    /// The address and the options in a URL.
    ///
    /// # Errors
    ///
    /// Names the part that cannot be used, the known schemes or parameters, or the missing feature.
    pub fn from_url(mut url: Url) -> Result<Self, InvalidInput> {
        let builder = Self {
            address: Address::take(&mut url)?,
            prefix: url.text("prefix")?.unwrap_or_else(|| "interval-queue".to_owned()),
            timeout: url.duration("timeout")?.unwrap_or(Duration::from_secs(2)),
            idle_expiry: url.duration("idle_expiry")?.unwrap_or(DAY * 7),
        };
        url.finish().map(|()| builder)
    }

    /// The prefix of all keys. Default: `interval-queue`.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Timeout of a connection attempt, and of a command once it is sent; at least 10 ms. Default:
    /// 2 s.
    ///
    /// At most 256 commands are in flight. Further commands wait for a permit, for 6 s or three
    /// times this timeout, whichever is longer. A command that gets no permit was not sent. So a
    /// busy server is not mistaken for one that vanished.
    ///
    /// A command without an answer may have been carried out. It is not sent again.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Time that the server keeps an unused queue, beyond everything it reserves; from an hour to
    /// 366 days. Default: 7 days. A paused queue never expires.
    pub fn idle_expiry(mut self, idle_expiry: Duration) -> Self {
        self.idle_expiry = idle_expiry;
        self
    }

    /// The address of the server.
    #[cfg(feature = "fuzzing")]
    #[doc(hidden)]
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Connects.
    ///
    /// # Errors
    ///
    /// [`Invalid`](interval_queue_contract::StateErrorKind::Invalid): an option cannot be used.
    /// [`Unreachable`](interval_queue_contract::StateErrorKind::Unreachable): no server answers.
    /// [`Denied`](interval_queue_contract::StateErrorKind::Denied): the server rejects user or
    /// password.
    pub async fn connect(self) -> Result<RedisStore, StateError> {
        within("timeout", self.timeout, Duration::from_millis(10), DAY)?;
        within("idle_expiry", self.idle_expiry, DAY / 24, MAX_EXPIRY)?;
        if self.prefix.chars().any(char::is_control) {
            let text = format!("prefix {:?} has a control character: use printable text", self.prefix);
            return Err(InvalidInput::new(text).into());
        }
        let link = Link::new(Dialer::new(self.address, self.timeout)?);
        link.connect().await?;
        let warning = eviction::warning(&link).await;
        if let Some(warning) = &warning {
            tracing::warn!("{warning}");
        }
        let (prefix, idle_expiry, warning) = (self.prefix.into(), self.idle_expiry, warning.map(Arc::from));
        Ok(RedisStore { link: link.into(), keeper: KeeperHandle::default(), prefix, idle_expiry, warning })
    }
}

fn within(what: &str, value: Duration, least: Duration, most: Duration) -> Result<(), InvalidInput> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(InvalidInput::new(format!("{what} {value:?} is out of range: give {least:?} to {most:?}")))
}
