//! What a shard is to do when the state is lost: the caller's choice.

use std::time::Duration;

use interval_queue_contract::{InvalidInput, MAX_INTERVAL, MAX_LEAD};

/// What a shard does while the shared state cannot be reached; see `Builder::when_state_is_lost` of the crate
/// `interval-queue`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum WhenStateIsLost {
    /// Nothing starts. Jobs wait, and work resumes by itself when the state answers again. The default.
    #[default]
    Wait,
    /// The shard goes on by itself, at its share of the rate: one start every `interval × n`, times the
    /// weight of the job. n is the larger of `shards` and of what the shard last saw in the record: itself
    /// and the others that had work, in the last reply that knew of any. Of a running limit it takes its
    /// share, too: `max_running / n` jobs, but at least one.
    ///
    /// It begins with a warning in the log, and not before its share of the slots that it knows to be
    /// reserved has come. Grants in hand are used first. Jobs start in the order of adding, also those that
    /// have no ticket yet: their `add` returns when they start, with
    /// [`Ticket::NONE`](interval_queue_contract::Ticket::NONE). A
    /// queue that was paused or held when the shard last heard of it stays so.
    ///
    /// Once the state answers again, the shard keeps to its share **and** to the slots of the state for 20
    /// seconds, by when others that were cut off as long have come back, too; from then on only to the slots.
    ///
    /// A state that answers but refuses, because of rights or of what is stored, is not lost: then nothing
    /// starts.
    ///
    /// # What it does not promise
    ///
    /// - **Spacing.** Shards do not know of each other: n of them may start a job at the same instant. Over a
    ///   longer time all together keep the rate, as long as no more than `shards` of them run.
    /// - **The rate, when only some are cut off.** While others still reach the state, or came back with work
    ///   only after the outage, they use the full rate, and each shard that is cut off adds its share to it.
    /// - **A running limit below the number of shards**: each shard runs at least one job.
    /// - **Order**, between the jobs of several shards.
    /// - **Control.** What is paused, held or changed while a shard is cut off is not seen by it.
    RunAlone {
        /// For how long the state has to fail this shard before, counted from the first command that failed:
        /// 1 s to 366 days. Slots are granted up to [`MAX_LEAD`] ahead, so those of others
        /// have passed by then. A shard that had nothing to ask for longer than that starts counting again.
        after: Duration,
        /// How many shards of the queue there may be, over all processes: at least 1.
        shards: u32,
    },
}

impl WhenStateIsLost {
    /// Fails unless the values are within their ranges.
    ///
    /// # Errors
    ///
    /// For a delay below a second or above 366 days, and for no shards.
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
