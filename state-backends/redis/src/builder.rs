//! How a [`RedisState`] is set up.

use std::time::Duration;

use interval_queue_contract::{InvalidInput, StateError};

use crate::{RedisState, address::Address, keys::Keys, link::Link};

const DAY: Duration = Duration::from_secs(24 * 3600);
/// Together with an hour's lease and a year's hold this stays within what `PEXPIRE` takes.
const LONGEST_EXPIRY: Duration = DAY.saturating_mul(366);

/// Settings for a [`RedisState`], checked by [`connect`](Builder::connect).
#[derive(Clone)]
#[must_use = "call connect"]
pub struct Builder {
    pub(crate) url: String,
    prefix: String,
    timeout: Duration,
    idle_expiry: Duration,
}

impl Builder {
    pub(crate) fn new(url: String) -> Self {
        Self {
            url,
            prefix: "interval-queue".to_owned(),
            timeout: Duration::from_secs(2),
            idle_expiry: DAY * 7,
        }
    }

    /// What the keys of all queues begin with. Default: `interval-queue`.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// How long to wait for a connection, and for the answer to a command once it is sent; 10 ms at least.
    /// Default: 2 s.
    ///
    /// At most 256 commands are under way at once. Further ones wait for their turn, for 6 s or three times
    /// as long; one that gets none was not sent. So a server that is busy is not mistaken for one that
    /// vanished.
    ///
    /// A command without an answer may have happened. It is not sent again.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// How long the server keeps a queue that nobody uses, beyond everything it reserves; an hour to 366
    /// days. Default: 7 days. A paused queue is kept for good.
    pub fn idle_expiry(mut self, idle_expiry: Duration) -> Self {
        self.idle_expiry = idle_expiry;
        self
    }

    /// Connects.
    ///
    /// # Errors
    ///
    /// [`Invalid`](interval_queue_contract::StateErrorKind::Invalid): the address or a setting cannot be
    /// used. [`Unreachable`](interval_queue_contract::StateErrorKind::Unreachable): no server answers there.
    /// [`Denied`](interval_queue_contract::StateErrorKind::Denied): it refuses user or password.
    pub async fn connect(self) -> Result<RedisState, StateError> {
        let address = Address::parse(&self.url)?;
        within("timeout", self.timeout, Duration::from_millis(10), DAY)?;
        within("idle_expiry", self.idle_expiry, DAY / 24, LONGEST_EXPIRY)?;
        if self.prefix.chars().any(char::is_control) {
            return Err(InvalidInput::new(format!(
                "prefix {:?} has a control character: use printable text",
                self.prefix
            ))
            .into());
        }
        let link = Link::new(address, self.timeout)?;
        link.connect().await?;
        let watching = link.watching();
        Ok(RedisState::new(link, watching, Keys::new(&self.prefix), self.idle_expiry))
    }
}

/// Without the address, which may hold a password.
impl std::fmt::Debug for Builder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Builder")
            .field("prefix", &self.prefix)
            .field("timeout", &self.timeout)
            .field("idle_expiry", &self.idle_expiry)
            .finish_non_exhaustive()
    }
}

fn within(what: &str, value: Duration, least: Duration, most: Duration) -> Result<(), InvalidInput> {
    if value < least || value > most {
        return Err(InvalidInput::new(format!(
            "{what} {value:?} is out of range: give {least:?} to {most:?}"
        )));
    }
    Ok(())
}
