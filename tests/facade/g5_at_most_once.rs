//! G5: a job starts only after a grant, at most once. A lost reply costs a slot, never a double start; a
//! grant that would be used much too late is given up.

use interval_queue::{IntervalQueue, JobHandle};
use interval_queue_conformance::Faulty;

use crate::common::{Noting, Random, Starts, add_in_turn, all_done, far, memory, ms};

#[tokio::test(start_paused = true)]
async fn lost_requests_and_replies_cost_slots_only() {
    for seed in 0..30 {
        let (_, state) = memory();
        let mut random = Random(seed);
        let mut shards = Vec::new();
        let mut wires = Vec::new();
        for number in 0..3 {
            let wire = Faulty::new(state.clone()).seeded(seed * 10 + number);
            let builder = IntervalQueue::builder("test").interval(ms(20)).lease(ms(1_000));
            shards.push(builder.open(wire.clone()).await.unwrap());
            wire.change(|faults| {
                (faults.lose_request, faults.lose_reply) = (0.05, 0.05);
                (faults.delay_before, faults.delay_after) = (ms(3), ms(3));
                faults.vary_delays = true;
                faults.time_out = ms(60);
            });
            wires.push(wire);
        }
        let starts = Starts::new();
        let mut handles = Vec::new();
        for job in 0..120 {
            handles.push(shards[random.below(3) as usize].add(starts.job(job)).await.unwrap());
            tokio::time::sleep(ms(random.below(15))).await;
        }
        all_done(handles).await;
        starts.assert_each_once(0..120);
        state.assert_spaced(ms(20));
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_reply_costs_a_slot() {
    let (state, wire, queue) = far(ms(100)).await;
    wire.change(|faults| faults.time_out = ms(1_000));
    wire.lose_next_reply();
    let starts = Starts::new();
    queue.add(starts.job(0)).await.unwrap().await.unwrap();
    assert_eq!(starts.jobs(), [0]);
    assert_eq!(state.slots().len(), 2, "one slot went unused");
    state.assert_spaced(ms(100));
}

#[tokio::test(start_paused = true)]
async fn a_grant_much_too_late_is_given_up_and_requested_again() {
    let (state, wire, queue) = far(ms(20)).await;
    let starts = Starts::new();
    let handles = add_in_turn(std::slice::from_ref(&queue), &starts, 40).await;
    // One reply takes three seconds; what it grants is stale when it arrives.
    wire.change(|faults| faults.delay_after = ms(3_000));
    tokio::time::sleep(ms(30)).await;
    wire.change(|faults| faults.delay_after = ms(0));
    all_done(handles).await;
    assert!(starts.gaps().iter().all(|gap| *gap >= ms(15)), "no burst: {:?}", starts.gaps());
    assert_eq!(starts.jobs(), (0..40).collect::<Vec<_>>());
    state.assert_spaced(ms(20));
}

/// A shard with jobs, at an interval of 10 ms, whose state is far away: so it asks early and has many grants
/// in hand.
async fn far_away(jobs: usize) -> (Noting, Starts, Vec<JobHandle<()>>) {
    let (state, wire, queue) = far(ms(10)).await;
    let starts = Starts::new();
    let handles = add_in_turn(std::slice::from_ref(&queue), &starts, jobs).await;
    wire.change(|faults| (faults.delay_before, faults.delay_after) = (ms(100), ms(100)));
    while starts.all().len() < 120 {
        tokio::time::sleep(ms(1)).await;
    }
    (state, starts, handles)
}

/// How many jobs started at once after so many had started.
fn at_once(starts: &Starts, before: usize) -> usize {
    let after = &starts.all()[before..];
    after.iter().filter(|start| start.at < after[0].at + ms(5)).count()
}

#[tokio::test(start_paused = true)]
async fn a_stall_brings_no_burst_although_the_lead_is_long() {
    let (state, starts, handles) = far_away(200).await;
    let before = starts.all().len();
    tokio::time::advance(ms(55)).await;
    all_done(handles).await;
    let at_once = at_once(&starts, before);
    assert!(at_once <= 2, "{at_once} starts at once: an interval may be made up for, and no more");
    state.assert_spaced(ms(10));
}

#[tokio::test(start_paused = true)]
async fn a_host_that_stalls_again_and_again_gets_on_without_a_burst() {
    let (state, starts, handles) = far_away(300).await;
    // Whatever is granted is too late, so that more and more lateness is put up with.
    for _ in 0..7 {
        tokio::time::advance(ms(2_500)).await;
        tokio::time::sleep(ms(202)).await;
    }
    let before = starts.all().len();
    tokio::time::advance(ms(600)).await;
    all_done(handles).await;
    let at_once = at_once(&starts, before);
    assert!(at_once <= 2, "{at_once} starts at once");
    state.assert_spaced(ms(10));
}
