//! A worker's knowledge of its queue's rate, which may change at any time. A task starts at once
//! only if a lookup covers it: sent after its lease, answered recently, no rate found. With a rate,
//! tasks wait for slots.

use std::time::{Duration, Instant};

/// A lookup without a rate lets tasks start for this long after its answer.
pub const MAX_LOOKUP_AGE: Duration = Duration::from_millis(100);

/// Time between two lookups while tasks wait for slots: the rate may have been removed.
pub const LOOKUP_INTERVAL: Duration = Duration::from_secs(1);

/// A worker's knowledge of its queue's rate.
#[derive(Clone, Debug, Default, Hash)]
pub struct Pace {
    /// Tasks to hold in hand for slots. `None`: no known rate.
    pub ahead: Option<u32>,
    pub(crate) sent: u64,
    pub(crate) sent_at: Option<Instant>,
    pub(crate) is_under_way: bool,
    /// Number and answer time of the last lookup, if it found no rate.
    pub(crate) free: Option<(u64, Instant)>,
    /// Lookups sent before the last lease.
    pub(crate) leased_at: u64,
    pub(crate) failures: u32,
    pub(crate) retry_at: Option<Instant>,
}

impl Pace {
    /// Only a lookup with a higher number covers tasks leased now.
    pub(crate) fn mark(&mut self) -> u64 {
        self.leased_at = self.sent;
        self.sent
    }

    pub(crate) fn covers(&self, mark: u64, now: Instant) -> bool {
        self.free
            .is_some_and(|(number, at)| number > mark && now.saturating_duration_since(at) <= MAX_LOOKUP_AGE)
    }
}
