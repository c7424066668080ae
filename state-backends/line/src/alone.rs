//! State that a shard keeps to go on without the store.

use std::time::{Duration, Instant};

/// State to go on without the store.
#[derive(Clone, Debug, Default)]
pub struct Alone {
    /// Number of other shards in the last reply that counted any. Later replies without others may
    /// mean that all were idle for a moment, not that they are gone.
    pub(crate) others: u32,
    /// Time and weight of this shard's last start.
    pub(crate) last_start: Option<(Instant, u32)>,
    /// Set while no command succeeds.
    pub(crate) lost: Option<Lost>,
    /// Until when a shard that reached the store again keeps to its share.
    pub(crate) settling_until: Option<Instant>,
}

#[derive(Clone, Debug)]
pub(crate) struct Lost {
    pub(crate) since: Instant,
    pub(crate) last_failure: Instant,
    /// Whether the store replies, but with an error that will not pass by itself.
    pub(crate) refused: bool,
    /// Random: spreads the starts of shards that lost the store at the same time.
    pub(crate) phase: f64,
    pub(crate) told: bool,
    /// Set after idle time, until a command fails again.
    pub(crate) unconfirmed: bool,
}

/// How a shard runs alone.
#[derive(Clone, Copy, Debug)]
pub struct Share {
    /// The number of shards that share the rate.
    pub shards: u32,
    /// The time between two starts of weight 1.
    pub pace: Duration,
}
