//! What the parts around a shard tell: the layers for clients, and the watching in a pause.

use interval_queue_contract::StateError;

use super::{TARGET, Telemetry, name};

impl Telemetry {
    /// A paused queue cannot be watched.
    pub(crate) fn watch_failed(&self, error: &StateError) {
        tracing::warn!(
            name: "watch.failed",
            target: TARGET,
            queue = %self.queue,
            shard = %self.shard,
            kind = name::kind(error.kind()),
            error = %error,
            "cannot watch the paused queue: until that works again this shard restarts with its next tick"
        );
    }
}

#[cfg(feature = "tower")]
impl Telemetry {
    /// A slot came for a service that was not looked at for so long that it takes another one.
    pub(crate) fn slot_stale(&self, age: std::time::Duration) {
        tracing::debug!(
            name: "slot.stale",
            target: TARGET,
            queue = %self.queue,
            shard = %self.shard,
            age_us = super::us(age),
            "a slot was seen too late: takes another one"
        );
    }
}

#[cfg(feature = "http")]
mod responses {
    use std::{fmt::Display, time::Duration};

    use super::{TARGET, Telemetry};
    use crate::{Error, telemetry::us};

    impl Telemetry {
        /// A response asks to wait, and the queue is held.
        pub(crate) fn response_held(&self, hold: Duration) {
            tracing::info!(
                name: "response.held",
                target: TARGET,
                queue = %self.queue,
                shard = %self.shard,
                hold_us = us(hold),
                "a response asks to wait"
            );
        }

        /// The same, but the state did not take it.
        pub(crate) fn response_not_held(&self, hold: Duration, error: &Error) {
            tracing::warn!(
                name: "response.not_held",
                target: TARGET,
                queue = %self.queue,
                shard = %self.shard,
                hold_us = us(hold),
                error = %error,
                "a response asks to wait, but the queue could not be held"
            );
        }

        /// A field of a response cannot be taken as it is. Any response may have one that holds nothing: no
        /// reason to fill the log.
        pub(crate) fn response_doubtful(&self, status: u16, hold: Option<Duration>, doubt: &impl Display) {
            macro_rules! doubtful {
                ($level:expr) => {
                    tracing::event!(
                        name: "response.doubtful",
                        target: TARGET,
                        $level,
                        queue = %self.queue,
                        shard = %self.shard,
                        status,
                        hold_us = hold.map(us),
                        "{doubt}"
                    )
                };
            }
            match hold {
                Some(_) => doubtful!(tracing::Level::WARN),
                None => doubtful!(tracing::Level::DEBUG),
            }
        }
    }
}
