//! G2: a shard starts its jobs in the order of `add`; shards that are alive and punctual start them in that of
//! their tickets.

use crate::common::{
    Random, Starts, add_at_random, add_in_turn, all_done, begun, memory, ms, shards, tickets, wired,
};

#[tokio::test(start_paused = true)]
async fn jobs_start_in_the_order_in_which_they_were_added() {
    let (_, shards, starts) = begun(5, ms(10)).await;
    let mut random = Random(2);
    let handles = add_at_random(&shards, &starts, 0..500, &mut random).await;
    let tickets = tickets(&handles).await;
    assert!(tickets.is_sorted());
    all_done(handles).await;
    assert_eq!(starts.jobs(), (0..500).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn the_order_holds_when_slots_are_shorter_than_a_round_trip() {
    let (state, faulty) = wired();
    faulty.change(|faults| {
        (faults.delay_before, faults.delay_after) = (ms(20), ms(20));
        faults.vary_delays = true;
    });
    let shards = shards(4, &faulty, ms(5)).await;
    let starts = Starts::new();
    let handles = add_in_turn(&shards, &starts, 300).await;
    all_done(handles).await;
    state.assert_spaced(ms(5));
    // The slots follow the tickets. Starts do as far as a virtual timer, which has whole milliseconds, can
    // tell.
    let slots: Vec<_> = state.slots().iter().map(|slot| slot.ticket).collect();
    let inversions = slots.windows(2).filter(|pair| pair[1] < pair[0]).count();
    assert!(inversions * 50 <= slots.len(), "{inversions} inversions of {}", slots.len());
}

#[tokio::test(start_paused = true)]
async fn adds_that_travel_together_keep_their_order() {
    let (_, faulty) = wired();
    faulty.change(|faults| faults.delay_before = ms(30));
    let shards = shards(1, &faulty, ms(10)).await;
    let starts = Starts::new();
    let adds = (0..50).map(|job| shards[0].add(starts.job(job)));
    let handles: Vec<_> = futures::future::join_all(adds).await.into_iter().map(Result::unwrap).collect();
    assert!(faulty.counts().steps <= 3, "{:?}", faulty.counts());
    all_done(handles).await;
    assert_eq!(starts.jobs(), (0..50).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn the_order_holds_at_the_running_limit() {
    for interval in [2, 20] {
        let (_, state) = memory();
        let shards = shards(5, &state, ms(interval)).await;
        shards[0].set_max_running(interval_queue::MaxRunning::AtMost(4)).await.unwrap();
        let starts = Starts::new();
        let mut random = Random(7);
        let mut handles = Vec::new();
        for job in 0..200 {
            let (start, length) = (starts.job(job), random.below(600));
            let job_future = async move {
                start.await;
                tokio::time::sleep(ms(length)).await;
            };
            handles.push(shards[random.below(5) as usize].add(job_future).await.unwrap());
        }
        all_done(handles).await;
        let jobs = starts.jobs();
        let inversions = jobs.windows(2).filter(|pair| pair[1] < pair[0]).count();
        eprintln!("{interval} {inversions} {:?}", starts.all().last().unwrap().at);
        assert!(inversions * 20 < jobs.len(), "interval {interval} ms: {inversions} inversions in {jobs:?}");
    }
}
