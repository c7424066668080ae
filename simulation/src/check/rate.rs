//! Since when a queue has a rate, and which processes may not know it yet.

use std::{collections::HashMap, time::Duration};

/// Maximum age of a reply without a rate after which a worker starts tasks at once, and the grain
/// of timers.
const MAX_RATE_AGE: Duration = Duration::from_millis(102);

#[derive(Default)]
pub(super) struct Force {
    since: Option<Duration>,
    reported_without_rate: HashMap<usize, Duration>,
}

impl Force {
    pub(super) fn is_now(&mut self, in_force: bool, at: Duration) {
        self.since = if in_force { self.since.or(Some(at)) } else { None };
    }

    pub(super) fn reported_without_rate(&mut self, process: usize, at: Duration) {
        self.reported_without_rate.insert(process, at);
    }

    /// Whether a task leased at `leased_at` may start without a slot, as decided at `decided`:
    /// there is no rate, or it is younger than the lease and the process read lately that there is
    /// none. A process stopped between decision and start cannot know better.
    pub(super) fn lets_start(&self, process: usize, leased_at: Duration, decided: Duration) -> bool {
        let Some(since) = self.since else { return true };
        let reported_at = self.reported_without_rate.get(&process);
        leased_at < since
            && reported_at.is_some_and(|&reported_at| decided.saturating_sub(reported_at) <= MAX_RATE_AGE)
    }
}
