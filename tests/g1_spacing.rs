//! G1: on the state's clock two slots are never closer than the interval in force.

mod common;

use common::{Random, Starts, add_in_turn, all_done, memory, ms, shards};
use interval_queue::JobOptions;

#[tokio::test(start_paused = true)]
async fn shards_together_keep_the_interval() {
    let (_, state) = memory();
    let shards = shards(4, &state, ms(10)).await;
    let starts = Starts::new();
    let mut random = Random(1);
    let mut handles = Vec::new();
    for job in 0..400 {
        let shard = &shards[random.below(4) as usize];
        handles.push(shard.add(starts.job(job)).await.unwrap());
        tokio::time::sleep(ms(random.below(12))).await;
    }
    all_done(handles).await;
    state.assert_spaced(ms(10));
    assert_eq!(state.slots().len(), 400);
}

#[tokio::test(start_paused = true)]
async fn a_job_never_starts_before_its_slot() {
    let (_, state) = memory();
    let shards = shards(3, &state, ms(10)).await;
    let starts = Starts::new();
    let handles = add_in_turn(&shards, &starts, 90).await;
    all_done(handles).await;
    // The state's clock began one second before that of the test.
    let slots: Vec<_> = state.slots().iter().map(|slot| slot.at.to_duration() - ms(1000)).collect();
    for (start, slot) in starts.all().iter().zip(slots) {
        assert!(start.at >= slot, "job {} started {:?} before its slot", start.job, slot - start.at);
    }
}

#[tokio::test(start_paused = true)]
async fn a_job_of_weight_three_takes_three_intervals() {
    let (_, state) = memory();
    let shards = shards(2, &state, ms(10)).await;
    let starts = Starts::new();
    let mut handles = Vec::new();
    for job in 0..60 {
        let weight = if job % 4 == 0 { 3 } else { 1 };
        let options = JobOptions::new().weight(weight);
        handles.push(shards[job % 2].add_with(options, starts.job(job)).await.unwrap());
    }
    all_done(handles).await;
    state.assert_spaced(ms(10));
    let slots = state.slots();
    let weights: u64 = slots.iter().map(|slot| u64::from(slot.weight)).sum();
    assert_eq!(weights, 15 * 3 + 45);
    // Nothing is wasted either: the last slot comes when all weights before it have passed.
    let took = slots.last().unwrap().at - slots[0].at;
    let last = u64::from(slots.last().unwrap().weight);
    assert!(took.to_duration() <= ms(10) * (weights - last) as u32 + ms(30), "{took:?}");
}
