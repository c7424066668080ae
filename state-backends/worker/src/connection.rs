//! A worker's connection state.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use backon::{BackoffBuilder, ExponentialBuilder};
use interval_queue_contract::{StateError, StateErrorKind};

use crate::run_id::RunId;

/// First and longest delay between two tries, before jitter.
pub const RETRY: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(5));

/// Maximum time of a command. A store should give up earlier; if it hangs, the worker does not.
pub const COMMAND_TIMEOUT: Duration = Duration::from_secs(10);

/// First and longest poll interval of an idle worker.
pub const POLL_INTERVAL: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

/// Poll interval of a worker held back by load: no notification comes when the load falls.
pub const LOAD_POLL_INTERVAL: Duration = Duration::from_secs(1);

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
    /// Kind of the last error.
    pub kind: StateErrorKind,
    /// Whether the error may pass without anyone's intervention.
    pub passes: bool,
    /// Number of failed tries.
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
    /// Number of tasks requested for free permits.
    pub want: u32,
    /// Number of tasks requested ahead of free permits.
    pub ahead: u32,
    /// The runs that it completes.
    pub completed: BTreeSet<RunId>,
    /// Exchanges requested when it was made.
    pub exchange: u64,
    /// Whether it follows a notification.
    pub notified: bool,
    /// Whether a stopping worker holds nothing after it.
    pub last: bool,
    /// Whether load restricts it to some priorities.
    pub restricted: bool,
}

/// A worker's connection to the store.
#[derive(Clone, Debug, Hash)]
pub struct Connection {
    /// Number of the last step.
    pub sequence: u64,
    /// Number of the last step that was answered.
    pub acknowledged: u64,
    /// The step that waits for its reply.
    pub under_way: Option<UnderWay>,
    /// Whether the next step must list all held leases.
    pub unsure: bool,
    /// When a step last listed all held leases: at least once per lease, since a store that was
    /// rolled back may have leased tasks, unnoticed, by a repeated request.
    pub listed: Option<Instant>,
    /// When the last step was sent.
    pub sent: Option<Instant>,
    /// End of the lease, counted from the sending of the last answered step.
    pub lease_ends: Option<Instant>,
    /// Whether the next step is due at once.
    pub again: bool,
    /// Whether maintenance is left before the store knows what it can lease. Only a worker with
    /// room steps again for it.
    pub more: bool,
    /// Whether the store may have changed.
    pub notified: bool,
    /// Notifications in a row without a task: other workers were faster.
    pub in_vain: u32,
    /// Whether the store had fewer tasks than requested.
    pub dry: bool,
    /// Time from the last step to the next poll of a dry store, unless the store gave a time.
    pub poll: Duration,
    /// When work is due, by the store's report.
    pub next_at: Option<Instant>,
    /// Exchanges requested and answered.
    pub exchange: (u64, u64),
    /// Set while the store does not reply.
    pub failing: Option<Failing>,
}

impl Connection {
    pub(crate) fn new() -> Self {
        Self {
            sequence: 0,
            acknowledged: 0,
            under_way: None,
            unsure: true,
            listed: None,
            sent: None,
            lease_ends: None,
            again: false,
            more: false,
            notified: false,
            in_vain: 0,
            dry: false,
            poll: POLL_INTERVAL.0,
            next_at: None,
            exchange: (0, 0),
            failing: None,
        }
    }

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
