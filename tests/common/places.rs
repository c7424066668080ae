//! Queues for tests of several limits: each on a state of its own, opened by several shards, and what started
//! in them.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "each test file uses a part"
)]

use std::time::Duration;

use futures::future::join_all;
use interval_queue::{Error, ErrorKind, IntervalQueue, Limits, SharedState};
use interval_queue_conformance::Faulty;

use tokio::time::Instant;

use crate::common::{Noting, Starts, memory, ms};

/// The time of a test.
#[allow(clippy::disallowed_methods, reason = "the tests' own clock")]
pub fn now() -> Instant {
    Instant::now()
}

/// What timers of virtual time are coarse by, and what a start may be late without moving another.
pub const COARSE: Duration = Duration::from_millis(2);

pub async fn open(name: &str, state: &(impl SharedState + Clone), interval: Duration) -> IntervalQueue {
    let builder = IntervalQueue::builder(name).interval(interval).linger(ms(0));
    builder.open(state.clone()).await.unwrap()
}

/// A queue with a state of its own, opened by several shards, and what started in it.
pub struct Place {
    pub state: Noting,
    pub wire: Faulty,
    pub shards: Vec<IntervalQueue>,
    pub starts: Starts,
    pub interval: Duration,
}

impl Place {
    pub async fn new(name: &str, interval: Duration, shards: usize) -> Self {
        Self::at(name, interval, shards, Duration::ZERO).await
    }

    /// With a state whose answers take so long.
    pub async fn at(name: &str, interval: Duration, shards: usize, trip: Duration) -> Self {
        let state = memory().1;
        let wire = Faulty::new(state.clone());
        wire.change(|faults| (faults.delay_before, faults.delay_after) = (trip / 2, trip / 2));
        let shards = join_all((0..shards).map(|_| open(name, &wire, interval))).await;
        Self { state, wire, shards, starts: Starts::new(), interval }
    }

    /// Starts are never nearer than the interval.
    pub fn assert_spaced(&self) {
        self.state.assert_spaced(self.interval);
        let least = self.least_gap();
        assert!(least + COARSE >= self.interval, "{least:?} of {:?}", self.interval);
    }

    /// The least time between two starts.
    pub fn least_gap(&self) -> Duration {
        let mut starts = self.starts.all();
        starts.sort_by_key(|start| start.at);
        starts.windows(2).map(|pair| pair[1].at - pair[0].at).min().unwrap_or(self.interval)
    }

    /// How many slots were granted that nothing started in.
    pub fn lost(&self) -> usize {
        self.state.slots().len() - self.starts.all().len()
    }

    pub async fn assert_left_nothing(&self) {
        for shard in &self.shards {
            tokio::time::timeout(ms(60_000), shard.wait_idle()).await.unwrap();
            assert_eq!((shard.waiting(), shard.running()), (0, 0));
        }
    }
}

pub fn kind<T>(result: Result<T, Error>) -> ErrorKind {
    result.err().map(|error| error.kind()).expect("an error")
}

/// A limits of the first shard of each place.
pub fn limits(places: &[&Place], shard: usize) -> Limits {
    Limits::new(places.iter().map(|place| place.shards[shard].clone())).unwrap()
}

/// Adds enough single jobs to two shards of a place to keep it busy for that long.
pub async fn keep_busy(place: &Place, shards: &[usize], jobs: usize) {
    for job in 0..jobs {
        let shard = &place.shards[shards[job % shards.len()]];
        shard.add(place.starts.job(10_000 + job)).await.unwrap().detach();
    }
}
