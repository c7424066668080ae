//! Several limits at once: a job starts when each of its queues has a slot for it.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test that gets no error fails, and says so")]

mod common;

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use common::{Noting, Random, Starts, memory, ms};
use futures::future::join_all;
use interval_queue::{Error, ErrorKind, IntervalQueue, JobGroup, JobOptions, Limits, MemoryState, SharedState};
use interval_queue_conformance::Faulty;
use tokio::time::sleep;

/// What timers of virtual time are coarse by, and what a start may be late without moving another.
const COARSE: Duration = Duration::from_millis(2);

async fn open(name: &str, state: &(impl SharedState + Clone), interval: Duration) -> IntervalQueue {
    let builder = IntervalQueue::builder(name).interval(interval).linger(ms(0));
    builder.open(state.clone()).await.unwrap()
}

/// A queue with a state of its own, opened by several shards, and what started in it.
struct Place {
    state: Noting,
    shards: Vec<IntervalQueue>,
    starts: Starts,
    interval: Duration,
}

impl Place {
    async fn new(name: &str, interval: Duration, shards: usize) -> Self {
        let (_, state) = memory();
        let shards = join_all((0..shards).map(|_| open(name, &state, interval))).await;
        Self { state, shards, starts: Starts::new(), interval }
    }

    /// Starts are never nearer than the interval.
    fn assert_spaced(&self) {
        self.state.assert_spaced(self.interval);
        let mut starts = self.starts.all();
        starts.sort_by_key(|start| start.at);
        for pair in starts.windows(2) {
            let gap = pair[1].at - pair[0].at;
            assert!(gap + COARSE >= self.interval, "{gap:?} of {:?}: {pair:?}", self.interval);
        }
    }

    /// How many slots were granted that nothing started in.
    fn lost(&self) -> usize {
        self.state.slots().len() - self.starts.all().len()
    }

    async fn assert_left_nothing(&self) {
        for shard in &self.shards {
            tokio::time::timeout(ms(60_000), shard.wait_idle()).await.unwrap();
            assert_eq!((shard.waiting(), shard.running()), (0, 0));
        }
    }
}

fn kind<T>(result: Result<T, Error>) -> ErrorKind {
    result.err().map(|error| error.kind()).expect("an error")
}

#[tokio::test(start_paused = true)]
async fn a_joint_job_starts_at_once_where_nothing_waits() {
    let (a, b) = (Place::new("a", ms(100), 1).await, Place::new("b", ms(10), 1).await);
    let limits = Limits::new([a.shards[0].clone(), b.shards[0].clone()]).unwrap();
    let clock = Starts::new();
    for job in 0..5 {
        let turns = limits.turn().await.unwrap();
        assert_eq!(turns.as_slice().len(), 2);
        clock.note(job);
        a.starts.note(job);
    }
    let last = clock.all()[4].at;
    assert!(clock.all()[0].at <= ms(2), "{:?}", clock.all());
    assert!(last >= ms(400) && last <= ms(420), "{last:?}");
    a.assert_spaced();
    assert_eq!((a.lost(), b.state.slots().len()), (0, 5));
    a.assert_left_nothing().await;
    b.assert_left_nothing().await;
}

async fn mix(seed: u64) {
    let places = [
        Arc::new(Place::new("a", ms(100), 3).await),
        Arc::new(Place::new("b", ms(10), 3).await),
        Arc::new(Place::new("c", ms(37), 3).await),
    ];
    let mut random = Random(seed);
    let mut tasks = Vec::new();
    for job in 0..200 {
        let shard = random.below(3) as usize;
        let pause = ms(random.below(8000));
        let mut chosen: Vec<_> = places.iter().filter(|_| !random.once_in(3)).cloned().collect();
        if random.once_in(2) {
            chosen.reverse();
        }
        let single = random.once_in(2);
        tasks.push(tokio::spawn(async move {
            sleep(pause).await;
            match (single, chosen.first()) {
                (true, Some(place)) => {
                    let _turn = place.shards[shard].turn().await.unwrap();
                    place.starts.note(job);
                }
                (false, Some(_)) => {
                    let limits = chosen.iter().map(|place| place.shards[shard].clone());
                    let _turns = Limits::new(limits).unwrap().turn().await.unwrap();
                    chosen.iter().for_each(|place| place.starts.note(job));
                }
                (_, None) => {}
            }
        }));
    }
    for task in tasks {
        tokio::time::timeout(ms(600_000), task).await.expect("every job starts").unwrap();
    }
    for place in &places {
        place.assert_spaced();
        place.assert_left_nothing().await;
    }
    let lost: Vec<_> = places.iter().map(|place| (place.lost(), place.starts.all().len())).collect();
    println!("seed {seed}: lost and used {lost:?}, {:?}", places[0].starts.all().last().unwrap().at);
}

#[tokio::test(start_paused = true)]
async fn no_queue_starts_faster_than_its_pace() {
    for seed in 0..100 {
        mix(seed).await;
    }
}
