//! What a latest start refuses is what could not be, and what it accepts ends in one way only.

use futures::FutureExt;
use interval_queue::{ErrorKind, IntervalQueue, JobGroup, JobOptions, Retry, SECOND, WhenStateIsLost};
use interval_queue_conformance::Faulty;
use tokio::time::{Instant, sleep, timeout};

use crate::common::{Starts, far, memory, ms, one, shard, shards, spawned, wired};

fn within(millis: u64) -> JobOptions {
    JobOptions::new().start_within(ms(millis))
}

fn no_jobs(count: usize) -> Vec<std::future::Ready<()>> {
    vec![std::future::ready(()); count]
}

/// A wire whose round trips take so long.
fn slow(wire: &Faulty, round_trip: u64) {
    wire.change(|faults| {
        (faults.delay_before, faults.delay_after) = (ms(round_trip / 2), ms(round_trip / 2))
    });
}

#[tokio::test(start_paused = true)]
async fn tickets_of_those_who_have_left_are_in_nobodys_way() {
    let (_, state) = memory();
    let gone = shard(&state, ms(100)).await;
    gone.add(async {}).await.unwrap().await.unwrap();
    gone.add_all(no_jobs(1000)).await.unwrap().into_iter().for_each(drop);
    gone.shutdown(ms(0)).await;
    sleep(ms(10_000)).await;
    let queue = shard(&state, ms(100)).await;
    queue.job(async {}).options(within(5000)).add().await.unwrap().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn nor_are_ones_own_that_were_given_up() {
    let queue = one(ms(5000)).await;
    queue.add(async {}).await.unwrap().await.unwrap();
    let group = JobGroup::new();
    let jobs = queue.jobs(no_jobs(1000)).options(JobOptions::new().group(&group)).add().await.unwrap();
    assert_eq!(group.cancel(), 1000);
    drop(jobs);
    for pause in [0, 1500] {
        sleep(ms(pause)).await;
        queue.job(async {}).options(within(11_000)).add().await.unwrap().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn the_estimate_of_an_urgent_job_precedes_jobs_without_tickets() {
    let (_, wire, queue) = far(ms(10)).await;
    queue.add(async {}).await.unwrap().await.unwrap();
    slow(&wire, 50);
    let batch = tokio::spawn({
        let queue = queue.clone();
        async move { queue.add_all(no_jobs(1000)).await.map(drop).unwrap() }
    });
    sleep(ms(10)).await;
    queue.job(async {}).options(within(2000).priority(1)).add().await.unwrap().await.unwrap();
    let late = queue.job(async {}).options(within(2000)).add().await.map(drop);
    assert_eq!(late.unwrap_err().kind(), ErrorKind::TooLate);
    batch.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_heavy_job_is_quoted_when_as_much_of_the_burst_is_there() {
    let (_, state) = memory();
    let queue = IntervalQueue::builder("test").rate(5).per(SECOND).burst(3).open(state).await.unwrap();
    queue.jobs(no_jobs(3)).add().await.unwrap();
    queue.wait_idle().await;
    for (weight, comes_in) in [(1, 200), (2, 400), (3, 600), (5, 600)] {
        let wait = queue.estimate_wait(&JobOptions::new().weight(weight)).await.unwrap();
        assert_eq!(wait, Some(ms(comes_in)), "{weight}");
    }
    let late = queue.job(async {}).options(within(500).weight(3)).add().await.map(drop);
    assert_eq!(late.unwrap_err().kind(), ErrorKind::TooLate);
    let (first, heavy) =
        (queue.add(async {}).await.unwrap(), queue.job(async {}).weight(3).add().await.unwrap());
    heavy.ticket().await.unwrap();
    assert_eq!(heavy.estimated_start(), Some(ms(800)));
    let before = Instant::now();
    first.await.unwrap();
    heavy.await.unwrap();
    assert!((ms(800)..ms(802)).contains(&before.elapsed()), "{:?}", before.elapsed());
}

#[tokio::test(start_paused = true)]
async fn old_memory_is_not_used_for_an_estimate() {
    let (state, wire) = wired();
    let busy = shard(&state, ms(1000)).await;
    let queue = shard(&wire, ms(1000)).await;
    busy.add_all(no_jobs(5000)).await.unwrap().into_iter().for_each(drop);
    assert!(queue.add(async {}).await.unwrap().cancel());
    queue.wait_idle().await;
    busy.shutdown(ms(0)).await;
    sleep(ms(600_000)).await;
    slow(&wire, 100);
    let plain = spawned(&queue, async {});
    sleep(ms(10)).await;
    queue.job(async {}).options(within(60_000)).add().await.unwrap().await.unwrap();
    plain.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_shard_that_runs_alone_quotes_its_own_pace() {
    let (state, wire) = wired();
    let other = shard(&state, ms(1000)).await;
    let alone = WhenStateIsLost::RunAlone { after: ms(1000), shards: 2 };
    let builder = IntervalQueue::builder("test").interval(ms(1000)).linger(ms(0));
    let queue = builder.when_state_is_lost(alone).open(wire.clone()).await.unwrap();
    let others = other.add_all(no_jobs(600)).await.unwrap();
    assert!(queue.add(async {}).await.unwrap().cancel());
    queue.wait_idle().await;
    wire.change(|faults| faults.outage = true);
    let plain = queue.add(async {}).await.unwrap();
    plain.await.unwrap();
    let plain = spawned(&queue, async {});
    tokio::task::yield_now().await;
    queue.job(async {}).options(within(20_000)).add().await.unwrap().await.unwrap();
    plain.await.unwrap();
    drop(others);
}

#[tokio::test(start_paused = true)]
async fn an_outage_is_no_quote() {
    let (_, wire, queue) = far(ms(1000)).await;
    queue.add_all(no_jobs(10)).await.unwrap().into_iter().for_each(drop);
    wire.change(|faults| faults.outage = true);
    sleep(ms(5000)).await;
    let added = tokio::spawn({
        let queue = queue.clone();
        async move { queue.job(async {}).options(within(30_000)).add().await.unwrap().await.unwrap() }
    });
    sleep(ms(1000)).await;
    // It may take half a dozen seconds more until the state is tried again.
    wire.change(|faults| faults.outage = false);
    added.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn jobs_added_together_are_not_rejected_once_one_has_started() {
    let (_, state) = memory();
    let shards = shards(2, &state, ms(10)).await;
    shards[0].add(async {}).await.unwrap().await.unwrap();
    shards[0].wait_idle().await;
    // Which the first shard hears of when it takes the tickets.
    shards[1].set_interval(ms(500)).await.unwrap();
    sleep(ms(700)).await;
    let starts = Starts::new();
    let jobs = (0..100).map(|job| starts.job(job));
    let added = shards[0].jobs(jobs).options(within(5000)).add().await;
    let mut kinds = Vec::new();
    match added {
        Err(error) => assert_eq!((error.kind(), starts.jobs().len()), (ErrorKind::TooLate, 0)),
        Ok(handles) => {
            for handle in handles {
                kinds.extend(handle.await.map_err(|error| error.kind()).err());
            }
        }
    }
    assert_eq!(kinds, vec![ErrorKind::TooLate; 100 - starts.jobs().len()]);
    assert!(!starts.jobs().is_empty());
}

#[tokio::test(start_paused = true)]
async fn nor_by_a_shard_that_runs_alone() {
    let wire = Faulty::new(memory().1);
    let alone = WhenStateIsLost::RunAlone { after: ms(1000), shards: 2 };
    let builder = IntervalQueue::builder("test").interval(ms(1000)).linger(ms(0));
    let queue = builder.when_state_is_lost(alone).open(wire.clone()).await.unwrap();
    queue.add(async {}).await.unwrap().await.unwrap();
    queue.wait_idle().await;
    wire.change(|faults| faults.outage = true);
    let starts = Starts::new();
    let handles = queue.jobs((0..8).map(|job| starts.job(job))).options(within(8000)).add().await.unwrap();
    let mut late = 0;
    for handle in handles {
        late += usize::from(handle.await.is_err_and(|error| error.kind() == ErrorKind::TooLate));
    }
    assert!((1..8).contains(&late), "{late}");
    assert_eq!(starts.jobs().len() + late, 8);
}

#[tokio::test(start_paused = true)]
async fn a_heavy_job_past_its_latest_start_takes_no_slots() {
    for hold in 1490..1510 {
        for round_trip in [0, 40] {
            let (_, wire, queue) = far(ms(1000)).await;
            let starts = Starts::new();
            queue.add(starts.job(0)).await.unwrap().await.unwrap();
            slow(&wire, round_trip);
            let options = within(1500).weight(1000);
            let Ok(heavy) = queue.job(starts.job(1)).options(options).add().await else { continue };
            let light = [queue.add(starts.job(2)).await.unwrap(), queue.add(starts.job(3)).await.unwrap()];
            queue.hold(ms(hold - 2 * round_trip)).await.unwrap();
            let started = heavy.await.is_ok();
            for job in light {
                job.await.unwrap();
            }
            let last = *starts.gaps().last().unwrap();
            assert!(started || last < ms(1500), "hold {hold}, round trip {round_trip}: {:?}", starts.all());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_waiter_for_a_permit_is_cancelled_with_the_group() {
    let builder = IntervalQueue::builder("test").interval(ms(100)).max_waiting(1);
    let queue = builder.open(memory().1).await.unwrap();
    queue.pause().await.unwrap();
    let kept = queue.add(async {}).await.unwrap();
    let group = JobGroup::new();
    let waits = tokio::spawn({
        let (queue, options) = (queue.clone(), JobOptions::new().group(&group));
        async move { queue.job(async {}).options(options).add().await.map(drop) }
    });
    sleep(ms(10)).await;
    group.cancel();
    let ended = timeout(ms(1000), waits).await.unwrap().unwrap();
    assert_eq!(ended.unwrap_err().kind(), ErrorKind::Cancelled);
    queue.resume().await.unwrap();
    kept.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_job_that_waits_for_a_retry_is_cancelled_with_the_group() {
    let queue = one(ms(10)).await;
    let group = JobGroup::new();
    let policy = Retry::times(5).first_delay(ms(50_000)).longest_delay(ms(50_000));
    let options = JobOptions::new().group(&group);
    let failing = || async { Err::<(), _>("no") };
    let job = queue.retrying(policy, failing).options(options).add().await.unwrap();
    sleep(ms(100)).await;
    group.cancel();
    assert_eq!(timeout(ms(1000), job).await.unwrap().unwrap(), Err("no"));
    timeout(ms(1000), queue.wait_idle()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_dropped_leaves_its_room_at_once() {
    let wire = Faulty::new(memory().1);
    let builder = IntervalQueue::builder("test").interval(ms(100)).max_waiting(1).linger(ms(0));
    let queue = builder.open(wire.clone()).await.unwrap();
    slow(&wire, 50);
    let mut dropped = Box::pin(queue.turn().into_future());
    assert!(dropped.as_mut().now_or_never().is_none());
    drop(dropped);
    assert_eq!(queue.waiting(), 0);
    queue.job(async {}).try_add().unwrap().await.unwrap();
}
