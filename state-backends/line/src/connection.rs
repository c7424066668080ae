//! A shard's connection state.

use std::time::{Duration, Instant};

use backon::{BackoffBuilder, ExponentialBuilder};
use interval_queue_contract::{Memory, StateError, Ticket};

/// First and longest delay between two tries, before jitter.
pub const RETRY: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(5));

/// Maximum time of a command. A backend should give up earlier; if it hangs, the shard does not.
pub const COMMAND_TIMEOUT: Duration = Duration::from_secs(10);

/// The delay before each try, without end.
pub fn retries(longest: Duration, seed: u64) -> impl Iterator<Item = Duration> {
    let delays = ExponentialBuilder::new().with_min_delay(RETRY.0).with_max_delay(longest);
    delays.without_max_times().with_jitter().with_jitter_seed(seed).build()
}

/// An outage of the store.
#[derive(Clone, Debug, Hash)]
pub struct Failing {
    /// Time of the first failure.
    pub since: Instant,
    /// Text of the last error.
    pub error: String,
    /// Number of failed tries.
    pub tries: u32,
    pub(crate) retry_at: Instant,
    seed: u64,
}

/// A shard's connection to the store.
#[derive(Clone, Debug, Hash)]
pub struct Connection {
    /// Memory of the record.
    pub memory: Memory,
    /// Whether this shard restores a missing record, instead of taking it for deleted.
    pub brings_back: bool,
    /// Whether the record lists this shard.
    pub present: bool,
    /// Whether the store must learn the number of running jobs.
    pub report: bool,
    /// Number of the last step.
    pub sequence: u64,
    /// Number of the last step answered or failed.
    pub answered: u64,
    /// Number of the last take.
    pub request: u64,
    /// Something happened since the last step was made, unknown to its reply: request again after
    /// it.
    pub ask_again: bool,
    /// When to request the next slot. `None`: when woken.
    pub ask_at: Option<Instant>,
    /// When the last step was made.
    pub last_step: Instant,
    /// Time of the last reply to a step or change.
    pub last_reply: Instant,
    /// The lowest ticket in the last step.
    pub lowest_reported: Option<Ticket>,
    /// The last read of the record, and when it was sent.
    pub last_read: Option<(Instant, Memory)>,
    /// Set while the store does not reply.
    pub failing: Option<Failing>,
}

impl Connection {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            memory: Memory::default(),
            brings_back: true,
            present: false,
            report: false,
            sequence: 0,
            answered: 0,
            request: 0,
            ask_again: false,
            ask_at: None,
            last_step: now,
            last_reply: now,
            lowest_reported: None,
            last_read: None,
            failing: None,
        }
    }

    /// Under a limit the store must learn of a job or slot that is gone.
    pub(crate) fn count_again(&mut self) {
        self.report |= self.memory.max_running.is_some();
    }

    pub(crate) fn ask(&mut self, now: Instant) {
        self.ask_at = Some(now);
        self.ask_again = true;
    }

    /// Requests the next slot at once, also while the store fails.
    pub fn request_now(&mut self, now: Instant) {
        self.ask(now);
        self.retry_now(now);
    }

    pub(crate) fn retry_now(&mut self, now: Instant) {
        if let Some(failing) = &mut self.failing {
            failing.retry_at = now;
        }
    }

    /// The memory to send. Without `brings_back` its revision 0 means no rates: tickets are lifted,
    /// but no missing record is restored.
    pub fn reported_memory(&self) -> Memory {
        if self.brings_back { self.memory } else { Memory { revision: 0, ..self.memory } }
    }

    pub(crate) fn learn(&mut self, seen: Memory) {
        if !self.brings_back {
            // The stored record counts, even if newer than one deleted meanwhile.
            self.memory.revision = 0;
        }
        self.memory.learn(seen);
    }

    pub(crate) fn fail(&mut self, error: &StateError, now: Instant, seed: u64) {
        self.answered = self.sequence;
        let failing = self.failing.get_or_insert_with(|| Failing {
            since: now,
            error: String::new(),
            tries: 0,
            retry_at: now,
            seed,
        });
        failing.error = error.to_string();
        let delay = retries(RETRY.1, failing.seed).nth(failing.tries as usize);
        failing.tries += 1;
        failing.retry_at = now + delay.unwrap_or(RETRY.1);
    }
}
