//! What a shard keeps in mind to go on by itself when the state is lost.

use std::time::{Duration, Instant};

/// What a shard keeps in mind to go on by itself.
#[derive(Clone, Debug, Default)]
pub struct Alone {
    /// How many other shards there were in the last reply that knew of any. That all others were idle for a
    /// moment does not mean that they are gone.
    pub(crate) others: u32,
    /// When a job of this shard last started, and its weight.
    pub(crate) last_start: Option<(Instant, u32)>,
    /// Since when no command succeeds.
    pub(crate) lost: Option<Lost>,
    /// Until when a shard that came back keeps to its share.
    pub(crate) settling_until: Option<Instant>,
}

#[derive(Clone, Debug)]
pub(crate) struct Lost {
    pub(crate) since: Instant,
    pub(crate) last_failure: Instant,
    /// Whether the state answered, but in a way that will not pass by itself.
    pub(crate) refused: bool,
    /// Random: keeps shards that lost the state together from starting together.
    pub(crate) phase: f64,
    pub(crate) told: bool,
    /// Whether the shard was idle since, and has not asked again yet.
    pub(crate) unconfirmed: bool,
}

/// How a shard runs alone.
#[derive(Clone, Copy, Debug)]
pub struct Share {
    /// As one of how many.
    pub shards: u32,
    /// The time between two starts of weight 1.
    pub pace: Duration,
}
