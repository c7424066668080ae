//! State that a shard needs without the store.

use std::time::{Duration, Instant};

/// State to go on without the store.
#[derive(Clone, Debug, Default)]
pub struct Alone {
    /// Number of other shards in the last reply that counted any. If later replies count none, all
    /// may be idle for a moment.
    pub(crate) others: u32,
    /// Time and weight of the last start.
    pub(crate) last_start: Option<(Instant, u32)>,
    /// Set while no command succeeds.
    pub(crate) lost: Option<Lost>,
    /// Until when a returned shard keeps to its share.
    pub(crate) settling_until: Option<Instant>,
}

#[derive(Clone, Debug)]
pub(crate) struct Lost {
    pub(crate) since: Instant,
    pub(crate) last_failure: Instant,
    /// Whether the store replies, with an error that will not pass by itself.
    pub(crate) refused: bool,
    /// Random: spreads the starts of shards that lost the store together.
    pub(crate) phase: f64,
    pub(crate) is_reported: bool,
    /// Set after idle time, until a command fails again.
    pub(crate) unconfirmed: bool,
}

/// How a shard runs alone.
#[derive(Clone, Copy, Debug)]
pub struct Share {
    /// Number of shards that share the rate.
    pub shards: u32,
    /// Time between two starts of weight 1.
    pub pace: Duration,
}
