//! The caller's choice of a shard's behaviour while the store is lost.

use std::time::Duration;

use interval_queue_contract::{InvalidInput, MAX_INTERVAL, MAX_LEAD};

/// Behaviour of a shard while the store cannot be reached; see `Builder::when_state_is_lost` of the
/// crate `interval-queue`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum WhenStateIsLost {
    /// Nothing starts. Jobs wait, and starts resume when the store replies again. The default.
    #[default]
    Wait,
    /// The shard continues at its share of the rate: one start every `interval × n`, times the
    /// weight of the job. n is the larger of `shards` and the number in the last reply that counted
    /// other shards with work, this one included. Its share of a running limit is
    /// `max_running / n` jobs, but at least one.
    ///
    /// It begins with a warning in the log, and not before its share of the slots known to be
    /// reserved has come. It uses grants in hand first. Jobs start in the order of adding, even
    /// without a ticket: their `add` returns when they start, with
    /// [`Ticket::NONE`](interval_queue_contract::Ticket::NONE). A queue that was paused or held
    /// when last seen stays so.
    ///
    /// Once the store replies again, the shard keeps to its share **and** to the slots of the store
    /// for 20 seconds, by when other shards of the same outage have returned, too; then only to the
    /// slots.
    ///
    /// A store that replies with a lasting error (rights, stored content) is not lost: nothing
    /// starts.
    ///
    /// # Limits
    ///
    /// - **Spacing.** Shards do not know of each other: n of them may start jobs at the same
    ///   instant. Over a longer time they keep the rate together, as long as at most `shards` run.
    /// - **The rate, if only some are cut off.** Shards that still reach the store, or return with
    ///   work only after the outage, use the full rate. Each shard that is cut off adds its share.
    /// - **A running limit below the number of shards.** Each shard runs at least one job.
    /// - **Order** between the jobs of several shards.
    /// - **Control.** A shard that is cut off does not see a pause, a hold or a change.
    RunAlone {
        /// How long the store must have failed this shard, counted from the first failed command:
        /// 1 s to 366 days. Slots are granted up to [`MAX_LEAD`] ahead, so by then those of other
        /// shards have passed. The count restarts if the shard requests nothing for longer than
        /// this.
        after: Duration,
        /// Maximum number of shards of the queue over all processes: at least 1.
        shards: u32,
    },
}

impl WhenStateIsLost {
    /// Checks the ranges of the values.
    ///
    /// # Errors
    ///
    /// A delay below 1 s or above 366 days; 0 shards.
    pub fn check(self) -> Result<(), InvalidInput> {
        let Self::RunAlone { after, shards } = self else {
            return Ok(());
        };
        let (least, most) = (MAX_LEAD.to_duration(), MAX_INTERVAL.to_duration());
        if after < least || after > most {
            return Err(InvalidInput::new(format!(
                "to run alone after {after:?} is out of range: give {least:?} to {most:?}"
            )));
        }
        if shards == 0 {
            return Err(InvalidInput::new(
                "to run alone as one of 0 shards: give how many there may be, at least 1",
            ));
        }
        Ok(())
    }
}
