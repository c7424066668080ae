//! Queues for tests of several limits: each on a state of its own, opened by several shards, and what started
//! in them.

use std::time::Duration;

use futures::future::join_all;
use interval_queue::{Error, ErrorKind, IntervalQueue, Limits, SharedState};
use interval_queue_conformance::Faulty;

use crate::common::{Noting, Starts, memory, ms, with_ticket};

/// What timers of virtual time are coarse by, and what a start may be late without moving another.
pub(crate) const COARSE: Duration = Duration::from_millis(2);

pub(crate) async fn open(
    name: &str,
    state: &(impl SharedState + Clone),
    interval: Duration,
) -> IntervalQueue {
    let builder = IntervalQueue::builder(name).interval(interval).linger(ms(0));
    builder.open(state.clone()).await.unwrap()
}

/// A queue with a state of its own, opened by several shards, and what started in it.
pub(crate) struct Crew {
    pub(crate) state: Noting,
    pub(crate) shards: Vec<IntervalQueue>,
    pub(crate) starts: Starts,
    pub(crate) interval: Duration,
}

impl Crew {
    pub(crate) async fn new(name: &str, interval: Duration, shards: usize) -> Self {
        Self::at(name, interval, shards, Duration::ZERO).await
    }

    /// With a state whose answers take so long.
    pub(crate) async fn at(name: &str, interval: Duration, shards: usize, trip: Duration) -> Self {
        let state = memory().1;
        let wire = Faulty::new(state.clone());
        wire.change(|faults| (faults.delay_before, faults.delay_after) = (trip / 2, trip / 2));
        let shards = join_all((0..shards).map(|_| open(name, &wire, interval))).await;
        Self { state, shards, starts: Starts::new(), interval }
    }

    /// Starts are never nearer than the interval.
    pub(crate) fn assert_spaced(&self) {
        self.state.assert_spaced(self.interval);
        let least = self.least_gap();
        assert!(least + COARSE >= self.interval, "{least:?} of {:?}", self.interval);
    }

    /// The least time between two starts.
    pub(crate) fn least_gap(&self) -> Duration {
        let mut starts = self.starts.all();
        starts.sort_by_key(|start| start.at);
        starts.windows(2).map(|pair| pair[1].at - pair[0].at).min().unwrap_or(self.interval)
    }

    /// How many slots were granted that nothing started in.
    pub(crate) fn lost(&self) -> usize {
        self.state.slots().len() - self.starts.all().len()
    }

    pub(crate) async fn assert_left_nothing(&self) {
        for shard in &self.shards {
            tokio::time::timeout(ms(60_000), shard.wait_idle()).await.unwrap();
            assert_eq!((shard.waiting(), shard.running()), (0, 0));
        }
    }
}

pub(crate) fn kind<T>(result: Result<T, Error>) -> ErrorKind {
    result.err().map(|error| error.kind()).expect("an error")
}

/// A limits of the first shard of each place.
pub(crate) fn limits(places: &[&Crew], shard: usize) -> Limits {
    Limits::new(places.iter().map(|place| place.shards[shard].clone())).unwrap()
}

/// Adds enough single jobs to two shards of a place to keep it busy for that long.
pub(crate) async fn keep_busy(place: &Crew, shards: &[usize], jobs: usize) {
    for job in 0..jobs {
        let shard = &place.shards[shards[job % shards.len()]];
        with_ticket(shard, place.starts.job(10_000 + job)).await;
    }
}
