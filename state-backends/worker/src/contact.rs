//! What a worker has said to the store and heard of it.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use backon::{BackoffBuilder, ExponentialBuilder};
use interval_queue_contract::{StateError, StateErrorKind};

use crate::held::RunId;

/// The first and the longest time between two tries, before jitter.
pub const RETRY: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(5));

/// The longest that a command may take. A store should give up earlier; one that hangs cannot hang the worker.
pub const COMMAND_TIMEOUT: Duration = Duration::from_secs(10);

/// The first and the longest time between two looks of an idle worker.
pub const POLL: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

/// The time between two looks of a worker that load holds back: nobody nudges it when the load falls.
pub const UNDER_LOAD: Duration = Duration::from_secs(1);

/// How long to wait before each try, for ever.
pub fn retries(longest: Duration, seed: u64) -> impl Iterator<Item = Duration> {
    let delays = ExponentialBuilder::new().with_min_delay(RETRY.0).with_max_delay(longest);
    delays.without_max_times().with_jitter().with_jitter_seed(seed).build()
}

/// The store does not answer.
#[derive(Clone, Debug, Hash)]
pub struct Failing {
    /// Since when.
    pub since: Instant,
    /// What it said last.
    pub error: String,
    /// What that is about.
    pub kind: StateErrorKind,
    /// Whether it may pass with nobody doing anything about it.
    pub passes: bool,
    /// How often it was tried.
    pub tries: u32,
    pub(crate) retry_at: Instant,
    seed: u64,
}

/// A step that was sent and not answered.
#[derive(Clone, Debug, Hash)]
pub struct UnderWay {
    /// Its number.
    pub sequence: u64,
    /// When it was sent.
    pub sent: Instant,
    /// How many tasks it asked for.
    pub want: u32,
    /// What it completes.
    pub completed: BTreeSet<RunId>,
    /// How many exchanges were asked for when it was made.
    pub exchange: u64,
    /// Whether something might have changed in the store before it.
    pub notified: bool,
    /// Whether nothing is held after it, by a worker that stops.
    pub last: bool,
    /// Whether it asks only for some priorities, under load.
    pub restricted: bool,
}

/// Where a worker stands with the store.
#[derive(Clone, Debug, Hash)]
pub struct Contact {
    /// The number of the last step.
    pub sequence: u64,
    /// That of the last one that was answered.
    pub acknowledged: u64,
    /// The step that waits for its answer.
    pub under_way: Option<UnderWay>,
    /// Whether the next step says all that the worker holds.
    pub unsure: bool,
    /// When a step said so last. It is said once a lease at least: a store that was rolled back may have
    /// leased tasks by a request that came again, and nobody heard that.
    pub stated: Option<Instant>,
    /// When the last step was sent.
    pub sent: Option<Instant>,
    /// When the lease ends, counted from the sending of the last step that was answered.
    pub lease_ends: Option<Instant>,
    /// Whether the store wants to hear again at once.
    pub again: bool,
    /// Whether the store has more to do before it knows what it can lease. Only a worker with room steps again for it.
    pub more: bool,
    /// Whether something may have changed in the store.
    pub notified: bool,
    /// How many nudges in a row brought no task: others were faster.
    pub in_vain: u32,
    /// Whether the store had less than the last step asked for.
    pub dry: bool,
    /// How long after the last step a dry store is looked at again, unless it has said when.
    pub poll: Duration,
    /// When it has something, by its own word.
    pub next_at: Option<Instant>,
    /// How many exchanges were asked for, and how many were answered.
    pub exchange: (u64, u64),
    /// Set while the store does not answer.
    pub failing: Option<Failing>,
}

impl Contact {
    pub(crate) fn new() -> Self {
        Self {
            sequence: 0,
            acknowledged: 0,
            under_way: None,
            unsure: true,
            stated: None,
            sent: None,
            lease_ends: None,
            again: false,
            more: false,
            notified: false,
            in_vain: 0,
            dry: false,
            poll: POLL.0,
            next_at: None,
            exchange: (0, 0),
            failing: None,
        }
    }

    /// Takes in that a step got no reply.
    pub(crate) fn fail(&mut self, error: &StateError, now: Instant, seed: u64) {
        let failing = self.failing.get_or_insert_with(|| Failing {
            since: now,
            error: String::new(),
            kind: error.kind(),
            passes: true,
            tries: 0,
            retry_at: now,
            seed,
        });
        failing.error = error.to_string();
        (failing.kind, failing.passes) = (error.kind(), error.is_retryable());
        let delay = retries(RETRY.1, failing.seed).nth(failing.tries as usize);
        failing.tries = failing.tries.saturating_add(1);
        failing.retry_at = now + delay.unwrap_or(RETRY.1);
    }
}
