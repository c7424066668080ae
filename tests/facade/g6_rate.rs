//! G6: while every slot has a claimant, slots are not wasted: the rate is nominal, not interval plus latency.

use std::time::Duration;

use crate::common::{Starts, add_in_turn, all_done, memory, ms, shards, wired};

/// Runs a saturated queue and returns how much longer than nominal it took, on the state's clock.
async fn share_of_nominal_rate(
    shard_count: usize,
    jobs: usize,
    interval: Duration,
    round_trip: Duration,
) -> f64 {
    let (state, faulty) = wired();
    faulty.change(|faults| {
        (faults.delay_before, faults.delay_after) = (round_trip / 2, round_trip / 2);
    });
    let shards = shards(shard_count, &faulty, interval).await;
    let starts = Starts::new();
    let adds = (0..jobs).map(|job| shards[job % shard_count].add(starts.job(job)));
    let handles = futures::future::join_all(adds).await.into_iter().map(Result::unwrap);
    all_done(handles).await;
    state.assert_spaced(interval);
    let slots = state.slots();
    let took = slots.last().unwrap().at - slots[0].at;
    interval.as_secs_f64() * (jobs - 1) as f64 / took.to_duration().as_secs_f64()
}

#[tokio::test(start_paused = true)]
async fn the_round_trip_is_not_added_to_the_interval() {
    let rate = share_of_nominal_rate(4, 400, ms(50), ms(20)).await;
    assert!(rate > 0.99, "{rate}");
}

#[tokio::test(start_paused = true)]
async fn slots_shorter_than_the_round_trip_are_used() {
    let rate = share_of_nominal_rate(4, 2_000, ms(10), ms(40)).await;
    assert!(rate > 0.95, "{rate}");
}

#[tokio::test(start_paused = true)]
async fn slots_much_shorter_than_a_timer_are_used() {
    let rate = share_of_nominal_rate(2, 20_000, Duration::from_micros(20), Duration::ZERO).await;
    assert!(rate > 0.95, "{rate}");
}

#[tokio::test(start_paused = true)]
async fn many_shards_cost_about_one_more_command_a_job() {
    let (_, faulty) = wired();
    let shards = shards(100, &faulty, ms(10)).await;
    let starts = Starts::new();
    let handles = add_in_turn(&shards, &starts, 1_000).await;
    all_done(handles).await;
    let steps = faulty.counts().steps as f64 / 1_000.0;
    assert!(steps < 2.6, "{steps} steps a job");
}

#[tokio::test(start_paused = true)]
async fn a_running_limit_that_short_jobs_hardly_reach_costs_no_slots() {
    let (_, state) = memory();
    let shards = shards(3, &state, ms(110)).await;
    shards[0].set_max_running(interval_queue::MaxRunning::AtMost(1)).await.unwrap();
    let clients = shards.into_iter().map(|shard| {
        tokio::spawn(async move {
            for _ in 0..40 {
                let turn = shard.turn().await.unwrap();
                tokio::time::sleep(ms(3)).await;
                drop(turn);
            }
        })
    });
    futures::future::join_all(clients).await;
    let slots = state.slots();
    let took = (slots.last().unwrap().at - slots[0].at).to_duration();
    let rate = 110.0 * 119.0 / (took.as_secs_f64() * 1000.0);
    assert!(rate > 0.95, "{rate}");
}
