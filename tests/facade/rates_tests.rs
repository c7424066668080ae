//! Rates as services publish them: bursts, quotas, and starts that keep their distance.

use std::time::Duration;

use interval_queue::{
    DAY, ErrorKind, IntervalQueue, MemoryState, Micros, OnExisting, Rate, RateLimit, SECOND, SpaceBy,
};

use crate::common::{Starts, all_done, memory, ms};

fn published() -> RateLimit {
    RateLimit::rate(5).per(SECOND).burst(20).and(10_000).per(DAY)
}

async fn open(state: &MemoryState, pace: RateLimit) -> IntervalQueue {
    let builder = IntervalQueue::builder("api").rate_limit(pace).on_existing(OnExisting::Replace);
    builder.open(state.clone()).await.unwrap()
}

/// When so many jobs start that are added in turn to these shards.
async fn starts(shards: &[IntervalQueue], count: usize) -> Vec<Duration> {
    let starts = Starts::new();
    let mut jobs = Vec::new();
    for n in 0..count {
        jobs.push(shards[n % shards.len()].add(starts.job(n)).await.unwrap());
    }
    all_done(jobs).await;
    starts.all().iter().map(|start| start.at).collect()
}

#[tokio::test(start_paused = true)]
async fn shards_share_bursts_and_quotas() {
    let state = MemoryState::new();
    let shards = [open(&state, published()).await, open(&state, published()).await];
    let at = starts(&shards, 60).await;
    assert!(at[19] < ms(50), "{at:?}");
    for (n, at) in at.iter().enumerate().skip(20) {
        let ideal = ms(200) * (n as u32 - 19);
        assert!((ideal..ideal + ms(20)).contains(at), "{n}: {at:?} instead of {ideal:?}");
    }
    // What was not used comes back, and no more of it.
    tokio::time::sleep(ms(1_000)).await;
    let at = starts(&shards, 10).await;
    let burst = at.iter().filter(|at| **at < ms(50)).count();
    assert!((5..=6).contains(&burst), "{at:?}");
}

#[tokio::test(start_paused = true)]
async fn a_quota_outlasts_the_burst() {
    let state = MemoryState::new();
    // Forty in a minute, of which four at once, and then one every 60/36 s.
    let queue = open(&state, RateLimit::rate(5).per(SECOND).and(40).per(SECOND * 60)).await;
    let at = starts(&[queue], 8).await;
    assert!(at[4] < SECOND * 2 && at[5] > SECOND * 3, "{at:?}");
    assert!(at[7] - at[6] >= ms(1_660), "{at:?}");
}

#[tokio::test(start_paused = true)]
async fn the_pace_can_be_changed_while_jobs_wait() {
    let state = MemoryState::new();
    let queue = open(&state, RateLimit::every(SECOND * 3600)).await;
    let starts = Starts::new();
    let mut jobs = Vec::new();
    for n in 0..10 {
        jobs.push(queue.add(starts.job(n)).await.unwrap());
    }
    tokio::time::sleep(SECOND).await;
    assert_eq!(starts.all().len(), 1);
    queue.set_rate_limit(RateLimit::rate(10).per(SECOND).burst(4)).await.unwrap();
    assert_eq!(queue.rates().to_vec(), [Rate { interval: Micros::from_millis(100), burst: 4 }]);
    all_done(jobs).await;
    let at: Vec<_> = starts.all().iter().map(|start| start.at).collect();
    assert!(at[1] < SECOND * 2 && at[9] < SECOND * 3, "{at:?}");
    // From the slot of the first on it has given back what it may.
    assert!(at[4] - at[1] < ms(50) && at[9] - at[4] >= ms(400), "{at:?}");
}

#[tokio::test(start_paused = true)]
async fn a_late_start_moves_the_next_one_if_starts_are_spaced() {
    for (space_by, gap) in [(SpaceBy::Slots, 61..=62), (SpaceBy::Starts, 100..=104)] {
        let builder = IntervalQueue::builder("strict").interval(ms(100)).space_by(space_by);
        let queue = builder.open(MemoryState::new()).await.unwrap();
        let starts = Starts::new();
        let mut jobs = Vec::new();
        for n in 0..4 {
            jobs.push(queue.add(starts.job(n)).await.unwrap());
        }
        // The process stands still over the second slot, which it has been granted.
        tokio::time::sleep(ms(99)).await;
        tokio::time::advance(ms(40)).await;
        all_done(jobs).await;
        let gaps: Vec<_> = starts.gaps().iter().map(Duration::as_millis).collect();
        assert!((138..=141).contains(&gaps[0]), "{space_by:?}: {gaps:?}");
        assert!(gap.contains(&gaps[1]), "{space_by:?}: {gaps:?}");
        assert!((99..=104).contains(&gaps[2]), "{space_by:?}: {gaps:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_invalid_rate_limit_is_rejected_and_nothing_is_stored() {
    let (memory, state) = memory();
    let builder = || IntervalQueue::builder("test");
    for (builder, says) in [
        (builder().rate(0).per(SECOND), "rate of 0 per 1s"),
        (builder().rate(1_000_000_000).per(SECOND), "at most one per microsecond"),
        (builder().rate(5).per(SECOND).burst(0), "burst 0"),
        (builder().burst(5), "a burst of 5 without a rate"),
        (builder().interval(Duration::ZERO), "interval 0"),
        (builder().interval(ms(1)).burst(2_000_000), "burst 2000000"),
        (
            (1..=9).fold(builder(), |builder, n| builder.and(n).per(SECOND * n as u32).burst(n as u32)),
            "9 rates",
        ),
    ] {
        let error = builder.open(state.clone()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().contains(says), "{error}");
    }
    assert!(memory.snapshot(&crate::common::queue()).is_none());
}
