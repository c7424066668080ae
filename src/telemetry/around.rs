//! What the parts around a shard tell: the layers for clients, and the watching in a pause.

#[cfg(feature = "tower")]
use std::time::Duration;

use interval_queue_contract::StateError;

#[cfg(feature = "tower")]
use super::us;
use super::{Telemetry, event::tell, name};

impl Telemetry {
    /// A paused queue cannot be watched.
    pub(crate) fn watch_failed(&self, error: &StateError) {
        tell!(
            self, WARN, "watch.failed",
            "cannot watch the paused queue: until that works again this shard looks every few seconds",
            kind = name::kind(error.kind()), error = %error
        );
    }

    /// A slot came for a service that was not looked at for so long that it takes another one.
    #[cfg(feature = "tower")]
    pub(crate) fn slot_stale(&self, age: Duration) {
        tell!(self, DEBUG, "slot.stale", "a slot was seen too late: takes another one", age_us = us(age));
    }

    /// A response asks to wait, and the queue is held.
    #[cfg(feature = "http")]
    pub(crate) fn response_held(&self, hold: Duration) {
        tell!(self, INFO, "response.held", "a response asks to wait", hold_us = us(hold));
    }

    /// The same, but the state did not take it.
    #[cfg(feature = "http")]
    pub(crate) fn response_not_held(&self, hold: Duration, error: &crate::Error) {
        tell!(
            self, WARN, "response.not_held", "a response asks to wait, but the queue could not be held",
            hold_us = us(hold), error = %error
        );
    }

    /// A field of a response cannot be taken as it is. Any response may have one that holds nothing: no
    /// reason to fill the log.
    #[cfg(feature = "http")]
    pub(crate) fn response_doubtful(
        &self,
        status: u16,
        hold: Option<Duration>,
        doubt: &impl std::fmt::Display,
    ) {
        tell!(
            self, WARN if hold.is_some(), else DEBUG, "response.doubtful", "{doubt}",
            status, hold_us = hold.map(us)
        );
    }
}
