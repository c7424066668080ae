//! How many tasks a worker leases ahead of free permits, so that no permit waits for a round trip.

use std::time::{Duration, Instant};

use crate::worker::Worker;

/// Default maximum of prefetched tasks, per permit.
pub const PREFETCH_PER_PERMIT: u32 = 8;

/// Default maximum of prefetched tasks of a worker.
pub const MAX_PREFETCH: u32 = 1_000;

/// Maximum time that the prefetched tasks take to start, by the present rate of starts.
const MAX_WORK: Duration = Duration::from_millis(50);

/// A prefetched task that has not started after this time is given back.
pub const MAX_WAIT: Duration = Duration::from_millis(100);

/// A worker's knowledge of its own speed.
#[derive(Clone, Debug, Default, Hash)]
pub struct Prefetch {
    /// Number of tasks to hold ahead of free permits.
    pub target: u32,
    /// Whether the store allows it, and the last reply brought all tasks that were requested.
    pub is_open: bool,
    /// Runs begun since the last step was sent.
    pub begun: u32,
    /// Time from the last answered step to its reply.
    pub round_trip: Duration,
}

impl Prefetch {
    /// Sets the target to the number of tasks that start in two round trips, or in 50 ms if that is
    /// shorter, by the rate of starts since the last step.
    fn tune(&mut self, most: u32, since: Duration) {
        let begun = std::mem::take(&mut self.begun);
        let horizon = (self.round_trip * 2).min(MAX_WORK);
        let target = u128::from(begun) * horizon.as_nanos() / since.as_nanos().max(1);
        self.target = if self.is_open { u32::try_from(target).unwrap_or(u32::MAX).min(most) } else { 0 };
    }
}

impl Worker {
    /// Tunes the prefetch for the step about to be sent. Returns how many tasks to request beyond
    /// `want`. Nothing is prefetched under a rate or a capacity.
    pub(crate) fn ahead(&mut self, now: Instant) -> u32 {
        let since = self.connection.sent.map_or(Duration::ZERO, |sent| now.saturating_duration_since(sent));
        self.prefetch.tune(self.identity.prefetch, since);
        if self.pace.ahead.is_some() || self.identity.capacity.is_some() || self.stopping.is_some() {
            return 0;
        }
        self.prefetch.target.saturating_sub(self.in_hand_ahead())
    }

    /// Takes in the reply to a step that requested up to `limit` tasks.
    pub(crate) fn learn(&mut self, limit: u32, leased: usize, may_prefetch: bool, round_trip: Duration) {
        self.prefetch.round_trip = round_trip;
        if !may_prefetch {
            self.give_back_ahead();
        } else if limit > 0 {
            self.prefetch.is_open = leased >= limit as usize;
        }
    }

    /// Number of tasks in hand beyond the free permits.
    fn in_hand_ahead(&self) -> u32 {
        u32::try_from(self.held.leased.len()).unwrap_or(u32::MAX).saturating_sub(self.free())
    }

    /// When a task in hand has waited too long for a permit.
    pub fn waited_at(&self) -> Option<Instant> {
        if self.pace.ahead.is_some() || self.in_hand_ahead() == 0 {
            return None;
        }
        self.held.oldest_in_hand().map(|received| received + MAX_WAIT)
    }

    /// Gives back what is in hand beyond the free permits, the least urgent tasks: runs take longer
    /// than was expected, and other workers may be idle.
    pub(crate) fn give_back_ahead(&mut self) {
        for _ in 0..self.in_hand_ahead() {
            if let Some(last) = self.held.leased.keys().next_back().copied() {
                self.held.give_back(last);
            }
        }
        (self.prefetch.is_open, self.prefetch.target) = (false, 0);
    }
}
