//! [`Connection`]: the state of a shard's connection to its store.

use std::time::Instant;

use interval_queue_contract::{StateError, Step, Stepped, WaitReason};

/// The connection of a shard to its store, as of the last poll; see
/// [`IntervalQueue::connection`](crate::IntervalQueue::connection).
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Connection {
    /// Set while the store fails.
    pub failing: Option<Failing>,
    /// Whether the queue is paused.
    pub paused: bool,
    /// Why the first ticket of this shard waits. `None`: unknown, or no ticket waits.
    pub wait: Option<WaitReason>,
    /// When this shard starts its next job if every earlier ticket is used. `None`: unknown.
    pub next_start: Option<Instant>,
}

/// An outage of a store.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Failing {
    /// When the first failure was noticed, by the clock of the [`Host`](crate::Host).
    pub since: Instant,
    /// The last error. If [`StateError::is_retryable`] is false, somebody must act.
    pub error: StateError,
}

impl Failing {
    /// Records a failure noticed at `at`. The first failure of an outage sets its beginning.
    #[doc(hidden)]
    pub fn record(outage: &mut Option<Self>, error: &StateError, at: Instant) {
        let since = outage.as_ref().map_or(at, |failing| failing.since);
        *outage = Some(Self { since, error: error.clone() });
    }
}

impl Connection {
    pub(crate) fn after(step: &Step, stepped: &Stepped, received: Instant) -> Self {
        let memory = stepped.memory;
        let first = step.ask.first().map(|ask| ask.ticket).or(stepped.taken.map(|taken| taken.first));
        let granted = stepped.grants.first().map(|grant| grant.slot - memory.at);
        let start_in = granted.or_else(|| first.map(|ticket| memory.slot_in(ticket)));
        Self {
            failing: None,
            paused: memory.paused,
            wait: stepped.wait.as_ref().map(|wait| wait.reason.clone()),
            next_start: start_in.map(|start_in| received + start_in.to_duration()),
        }
    }
}
