//! G5: a job starts only after a grant, at most once. A lost reply costs a slot, never a double start; a grant that
//! would be used much too late is given up.

mod common;

use common::{Random, Starts, add_in_turn, all_done, memory, ms, shards};
use interval_queue::IntervalQueue;
use interval_queue_conformance::Faulty;

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
        let mut jobs = starts.jobs();
        jobs.sort();
        assert_eq!(jobs, (0..120).collect::<Vec<_>>(), "seed {seed}");
        state.assert_spaced(ms(20));
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_reply_costs_a_slot() {
    let (_, state) = memory();
    let wire = Faulty::new(state.clone());
    let queue = shards(1, &wire, ms(100)).await.remove(0);
    wire.change(|faults| faults.time_out = ms(1_000));
    wire.lose_next_reply();
    let starts = Starts::new();
    queue.add(starts.job(0)).await.unwrap().await.unwrap();
    assert_eq!(starts.jobs(), [0]);
    assert_eq!(state.slots().len(), 2, "one slot went unused");
    state.assert_spaced(ms(100));
}

#[tokio::test(start_paused = true)]
async fn a_grant_that_comes_much_too_late_is_given_up_and_asked_for_again() {
    let (_, state) = memory();
    let wire = Faulty::new(state.clone());
    let queue = shards(1, &wire, ms(20)).await.remove(0);
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
