//! What a shard has said to the state and heard of it.

use std::time::{Duration, Instant};

use backon::{BackoffBuilder, ExponentialBuilder};
use interval_queue_contract::{Memory, StateError, Ticket};

/// The first and the longest time between two tries, before jitter.
pub const RETRY: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(5));

/// The longest that a command may take. A backend should give up earlier; one that hangs cannot hang the
/// shard.
pub const COMMAND_TIMEOUT: Duration = Duration::from_secs(10);

/// How long to wait before each try, for ever.
pub fn retries(longest: Duration, seed: u64) -> impl Iterator<Item = Duration> {
    let delays = ExponentialBuilder::new().with_min_delay(RETRY.0).with_max_delay(longest);
    delays.without_max_times().with_jitter().with_jitter_seed(seed).build()
}

/// The state does not answer.
#[derive(Clone, Debug, Hash)]
pub struct Failing {
    /// Since when.
    pub since: Instant,
    /// What it said last.
    pub error: String,
    /// How often it was tried.
    pub tries: u32,
    pub(crate) retry_at: Instant,
    seed: u64,
}

/// Where a shard stands with the state.
#[derive(Clone, Debug, Hash)]
pub struct Contact {
    /// What it remembers of the record.
    pub memory: Memory,
    /// Whether this shard brings the record back if it is gone. Otherwise a record that is gone was deleted.
    pub brings_back: bool,
    /// Whether the record knows this shard.
    pub present: bool,
    /// Whether the state waits to hear how many jobs run.
    pub report: bool,
    /// The number of the last step.
    pub sequence: u64,
    /// That of the last one that was answered or failed.
    pub answered: u64,
    /// That of the last take.
    pub request: u64,
    /// Whether something happened since the last step was made that its reply cannot know: ask again after
    /// it.
    pub ask_again: bool,
    /// When to ask for the next slot; none: when woken.
    pub ask_at: Option<Instant>,
    /// When the last step was made.
    pub last_step: Instant,
    /// When the state last told how it stands.
    pub heard: Instant,
    /// The lowest ticket that the state was told of in the last step.
    pub told: Option<Ticket>,
    /// What the record showed when it was last read, and when.
    pub looked: Option<(Instant, Memory)>,
    /// Set while the state does not answer.
    pub failing: Option<Failing>,
}

impl Contact {
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
            heard: now,
            told: None,
            looked: None,
            failing: None,
        }
    }

    /// A job or a slot that was counted is gone: under a limit the state is to hear of it.
    pub(crate) fn count_again(&mut self) {
        self.report |= self.memory.max_running.is_some();
    }

    /// Asks for the next slot at once.
    pub(crate) fn ask(&mut self, now: Instant) {
        self.ask_at = Some(now);
        self.ask_again = true;
    }

    /// The same, also if the state was failing.
    pub fn nudge(&mut self, now: Instant) {
        self.ask(now);
        self.retry_now(now);
    }

    /// The next try may come at once.
    pub(crate) fn retry_now(&mut self, now: Instant) {
        if let Some(failing) = &mut self.failing {
            failing.retry_at = now;
        }
    }

    /// What the record is told of what this shard remembers. Without a revision no rates are remembered: tickets are still
    /// lifted, and nothing can be made of it where there is no record.
    pub fn told(&self) -> Memory {
        if self.brings_back { self.memory } else { Memory { revision: 0, ..self.memory } }
    }

    /// Takes in what a reply showed.
    pub(crate) fn learn(&mut self, seen: Memory) {
        if !self.brings_back {
            // What is stored holds, though it may be younger than what was deleted meanwhile.
            self.memory.revision = 0;
        }
        self.memory.learn(seen);
    }

    /// Takes in that a step got no reply.
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
