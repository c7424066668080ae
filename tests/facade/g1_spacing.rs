//! G1: on the state's clock two slots are never closer than the interval in force.

use interval_queue::{
    JobOptions, SharedState, Ticket,
    contract::{Ask, Command, Memory, Micros, Reply, ShardId, Step, Stepped, Take},
};

use crate::common::{Random, add_in_turn, all_done, begun, memory, ms, open, queue};

#[tokio::test(start_paused = true)]
async fn shards_together_keep_the_interval() {
    let (state, shards, starts) = begun(4, ms(10)).await;
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
    let (state, shards, starts) = begun(3, ms(10)).await;
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
    let (state, shards, starts) = begun(2, ms(10)).await;
    let mut handles = Vec::new();
    for job in 0..60 {
        let weight = if job % 4 == 0 { 3 } else { 1 };
        let options = JobOptions::new().weight(weight);
        handles.push(shards[job % 2].job(starts.job(job)).options(options).add().await.unwrap());
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

#[tokio::test(start_paused = true)]
async fn a_slot_is_noted_with_the_weight_it_was_asked_for_with() {
    let (_, state) = memory();
    drop(open(state.clone(), ms(10)).await);
    let step = async |sequence, take, ask| -> Stepped {
        let shard = ShardId::new("a").unwrap();
        let idle = Step::idle(shard, sequence, Memory::default(), Micros::from_millis(5_000));
        let step = Step { lead: Micros::from_millis(100), take: Some(take), ask, ..idle };
        let reply = state.apply(&queue(), Command::Step(step)).await;
        reply.and_then(Reply::stepped).unwrap()
    };
    step(1, Take { request: 1, count: 1, weights: vec![] }, vec![]).await;
    // One it has, and one that it takes.
    let ask = vec![Ask { ticket: Ticket::new(1), weight: 2 }];
    step(2, Take { request: 2, count: 1, weights: vec![3] }, ask).await;
    let slots: Vec<_> = state.slots().iter().map(|slot| (slot.ticket.get(), slot.weight)).collect();
    assert_eq!(slots, [(1, 2), (2, 3)]);
}
