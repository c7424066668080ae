//! What a worker knows of the rate of its queue. Anybody may give the queue a rate, change it or remove it at any time, so
//! a task starts at once only if a look at the rate covers it: one that was sent after the task had been leased, and
//! answered lately. With a rate tasks wait in hand for their slots.

use std::time::{Duration, Instant};

/// How long a look that found no rate lets tasks start at once, from its answer on.
pub const FRESH: Duration = Duration::from_millis(100);

/// The time between two looks of a worker whose tasks wait for slots: the rate may have been removed.
pub const WATCH_RATE: Duration = Duration::from_secs(1);

/// What a worker knows of the rate of its queue.
#[derive(Clone, Debug, Default, Hash)]
pub struct Pace {
    /// How many tasks are in hand while they wait for their slots. `None`: no rate is known of.
    pub ahead: Option<u32>,
    /// How many looks were sent.
    pub(crate) sent: u64,
    /// When the last look was sent.
    pub(crate) sent_at: Option<Instant>,
    pub(crate) is_under_way: bool,
    /// The last look, if it found no rate: its number, and when it was answered.
    pub(crate) free: Option<(u64, Instant)>,
    /// How many looks there had been when tasks were leased last.
    pub(crate) leased_at: u64,
    pub(crate) failures: u32,
    pub(crate) retry_at: Option<Instant>,
}

impl Pace {
    /// What tasks are marked with that are leased now: a look with a higher number covers them.
    pub(crate) fn mark(&mut self) -> u64 {
        self.leased_at = self.sent;
        self.sent
    }

    /// Whether a task with this mark may start at once.
    pub(crate) fn covers(&self, mark: u64, now: Instant) -> bool {
        self.free.is_some_and(|(number, at)| number > mark && now.saturating_duration_since(at) <= FRESH)
    }
}
