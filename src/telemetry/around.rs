//! Events around a shard: client layers, and the watch during a pause.

#[cfg(feature = "tower")]
use std::time::Duration;

use interval_queue_contract::StateError;

#[cfg(feature = "tower")]
use super::us;
use super::{Telemetry, event::emit, name};

impl Telemetry {
    pub(crate) fn watch_failed(&self, error: &StateError) {
        emit!(
            self, WARN, "watch.failed",
            "cannot watch the paused queue: until that works again this shard polls every few seconds",
            kind = name::kind(error.kind()), error = %error
        );
    }

    /// A paced service was polled too late.
    #[cfg(feature = "tower")]
    pub(crate) fn slot_stale(&self, age: Duration) {
        emit!(self, DEBUG, "slot.stale", "a slot was seen too late: takes another one", age_us = us(age));
    }

    #[cfg(feature = "http")]
    pub(crate) fn response_held(&self, hold: Duration) {
        emit!(self, INFO, "response.held", "a response asks to wait", hold_us = us(hold));
    }

    #[cfg(feature = "http")]
    pub(crate) fn response_not_held(&self, hold: Duration, error: &crate::Error) {
        emit!(
            self, WARN, "response.not_held", "a response asks to wait, but the queue could not be held",
            hold_us = us(hold), error = %error
        );
    }

    /// Only debug without a hold: any response may have such a field.
    #[cfg(feature = "http")]
    pub(crate) fn response_doubtful(
        &self,
        status: u16,
        hold: Option<Duration>,
        doubt: &impl std::fmt::Display,
    ) {
        emit!(
            self, WARN if hold.is_some(), else DEBUG, "response.doubtful", "{doubt}",
            status, hold_us = hold.map(us)
        );
    }
}
