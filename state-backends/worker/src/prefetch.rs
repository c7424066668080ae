//! How many tasks a worker leases ahead of free permits, so that no permit waits for a round trip.

use std::time::Duration;

/// Default maximum of prefetched tasks, per permit.
pub const PREFETCH_PER_PERMIT: u32 = 8;

/// Default maximum of prefetched tasks of a worker.
pub const MAX_PREFETCH: u32 = 1_000;

/// Time that prefetched tasks take at the present rate of starts.
const MAX_WORK: Duration = Duration::from_millis(50);

/// A prefetched task that has not started after this time is given back.
pub const MAX_WAIT: Duration = Duration::from_millis(100);

/// A worker's knowledge of its own speed.
#[derive(Clone, Debug, Default, Hash)]
pub struct Prefetch {
    /// Whether the store allows it, and the last reply brought all tasks that were requested.
    pub is_open: bool,
    /// Runs begun since the last step was sent.
    pub begun: u32,
    /// Time from the last answered step to its reply.
    pub round_trip: Duration,
}

impl Prefetch {
    /// Tasks that start in two round trips, or in 50 ms if that is shorter, by the rate of starts
    /// in the time `since` the last step.
    pub(crate) fn target(&mut self, most: u32, since: Duration) -> u32 {
        let begun = std::mem::take(&mut self.begun);
        let horizon = (self.round_trip * 2).min(MAX_WORK);
        let target = u128::from(begun) * horizon.as_nanos() / since.as_nanos().max(1);
        if self.is_open { u32::try_from(target).unwrap_or(u32::MAX).min(most) } else { 0 }
    }
}
