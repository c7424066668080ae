//! State that a shard needs without the store.

use std::time::{Duration, Instant};

/// State to go on without the store.
#[derive(Clone, Debug, Default)]
pub struct Alone {
    /// In the last reply that counted any: if later ones count none, all may be idle for a moment.
    pub(crate) others: u32,
    /// Time and weight.
    pub(crate) last_start: Option<(Instant, u32)>,
    pub(crate) lost: Option<Lost>,
    pub(crate) settling_until: Option<Instant>,
}

#[derive(Clone, Debug)]
pub(crate) struct Lost {
    pub(crate) since: Instant,
    pub(crate) last_failure: Instant,
    /// The store replies, with an error that will not pass by itself.
    pub(crate) refused: bool,
    /// Random: spreads the starts of shards that lost the store together.
    pub(crate) phase: f64,
    pub(crate) is_reported: bool,
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
