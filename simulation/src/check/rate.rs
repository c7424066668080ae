//! Since when a queue has a rate, and who may not know it yet.

use std::{collections::HashMap, time::Duration};

/// How long after its answer a look that found no rate lets a worker start tasks at once, and the grain of timers.
const MAX_RATE_AGE: Duration = Duration::from_millis(102);

/// Whether a queue has a rate: whether its record is there.
#[derive(Default)]
pub(super) struct Force {
    since: Option<Duration>,
    /// When each process was last told that there is no rate.
    reported_without_rate: HashMap<usize, Duration>,
}

impl Force {
    pub(super) fn is_now(&mut self, in_force: bool, at: Duration) {
        self.since = if in_force { self.since.or(Some(at)) } else { None };
    }

    pub(super) fn reported_without_rate(&mut self, process: usize, at: Duration) {
        self.reported_without_rate.insert(process, at);
    }

    /// Whether a task that was leased to the process at `leased_at` may start without a slot, as the process decided at
    /// `decided`: there is no rate, or it is younger than the lease, and the process was told lately that there is none. A
    /// process that is stopped between its decision and the start cannot know better.
    pub(super) fn lets_start(&self, process: usize, leased_at: Duration, decided: Duration) -> bool {
        let Some(since) = self.since else { return true };
        let reported_at = self.reported_without_rate.get(&process);
        leased_at < since
            && reported_at.is_some_and(|&reported_at| decided.saturating_sub(reported_at) <= MAX_RATE_AGE)
    }
}
