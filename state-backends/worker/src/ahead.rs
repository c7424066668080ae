//! Tasks held beyond the free permits: how many to request, and when they go back.

use std::time::{Duration, Instant};

use crate::{prefetch::MAX_WAIT, worker::Worker};

impl Worker {
    /// Beyond `want`, of the step about to be sent. Nothing is prefetched under a rate or a
    /// capacity.
    pub(crate) fn ahead(&mut self, now: Instant) -> u32 {
        let since = self.connection.sent.map_or(Duration::ZERO, |sent| now.saturating_duration_since(sent));
        let target = self.prefetch.target(self.identity.prefetch, since);
        if self.pace.ahead.is_some() || self.identity.capacity.is_some() || self.stopping.is_some() {
            return 0;
        }
        target.saturating_sub(self.in_hand_ahead())
    }

    pub(crate) fn learn(&mut self, limit: u32, leased: usize, may_prefetch: bool, round_trip: Duration) {
        self.prefetch.round_trip = round_trip;
        if !may_prefetch {
            self.give_back_ahead();
        } else if limit > 0 {
            self.prefetch.is_open = leased >= limit as usize;
        }
    }

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

    /// The least urgent tasks: runs take longer than expected, and other workers may be idle.
    pub(crate) fn give_back_ahead(&mut self) {
        (0..self.in_hand_ahead()).for_each(|_| self.held.give_back_last());
        self.prefetch.is_open = false;
    }
}
