//! G9: `ticket` and `current` never go back. A record that was lost or rewound is lifted again by what shards
//! remember.

use std::time::Duration;

use interval_queue::contract::Micros;
use interval_queue_conformance::Faulty;

use crate::common::{Random, Slot, Starts, add_at_random, all_done, memory, ms, queue, shard, shards};

fn too_close(slots: &[Slot], interval: Duration) -> usize {
    let interval = Micros::from_duration(interval);
    slots.windows(2).filter(|pair| pair[1].at - pair[0].at < interval).count()
}

#[tokio::test(start_paused = true)]
async fn a_lost_record_costs_an_interval_and_no_job() {
    for seed in 0..40 {
        let (memory, state) = memory();
        let shards = shards(4, &state, ms(50)).await;
        let starts = Starts::new();
        let mut random = Random(seed);
        let mut handles = add_at_random(&shards, &starts, 0..100, &mut random).await;
        tokio::time::sleep(ms(1_000 + random.below(1_000))).await;
        let before = memory.snapshot(&queue()).unwrap();
        memory.restore(&queue(), None);
        let handle = shards[random.below(4) as usize].add(starts.job(100)).await.unwrap();
        assert!(handle.ticket().await.unwrap() > before.current);
        handles.push(handle);
        all_done(handles).await;

        starts.assert_each_once(0..101);
        assert_eq!(too_close(&state.slots(), ms(50)), 0, "seed {seed}");
        let after = memory.snapshot(&queue()).unwrap();
        assert!(after.ticket >= before.ticket && after.current >= before.current, "seed {seed}");
        let longest = starts.gaps().into_iter().max().unwrap();
        assert!(longest <= ms(50) * 3, "seed {seed}: {longest:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_near_shard_does_not_start_within_the_lead_of_a_far_one() {
    for seed in 0..30 {
        let (memory, state) = memory();
        let wire = Faulty::new(state.clone());
        wire.change(|faults| (faults.delay_before, faults.delay_after) = (ms(60), ms(60)));
        let far = shard(&wire, ms(20)).await;
        let near = shard(&state, ms(20)).await;
        let starts = Starts::new();
        let adds = (0..100).map(|job| far.add(starts.job(job)));
        let mut handles: Vec<_> =
            futures::future::join_all(adds).await.into_iter().map(Result::unwrap).collect();
        for job in 100..200 {
            handles.push(near.add(starts.job(job)).await.unwrap());
        }
        tokio::time::sleep(ms(500 + Random(seed).below(700))).await;
        memory.restore(&queue(), None);
        handles.push(near.add(starts.job(200)).await.unwrap());
        all_done(handles).await;
        assert_eq!(too_close(&state.slots(), ms(20)), 0, "seed {seed}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_old_copy_put_back_brings_at_most_one_start_early() {
    for seed in 0..40 {
        let (memory, state) = memory();
        let shards = shards(3, &state, ms(50)).await;
        let starts = Starts::new();
        let mut random = Random(seed);
        let mut handles = add_at_random(&shards, &starts, 0..60, &mut random).await;
        tokio::time::sleep(ms(random.below(500))).await;
        let copy = memory.snapshot(&queue());
        handles.extend(add_at_random(&shards, &starts, 60..90, &mut random).await);
        tokio::time::sleep(ms(random.below(2_000))).await;
        memory.restore(&queue(), copy);
        handles.extend(add_at_random(&shards, &starts, 90..100, &mut random).await);
        all_done(handles).await;
        starts.assert_each_once(0..100);
        let early = too_close(&state.slots(), ms(50));
        assert!(early <= 1, "seed {seed}: {early} starts early");
    }
}

#[tokio::test(start_paused = true)]
async fn a_pause_survives_the_loss_of_the_record() {
    let (memory, state) = memory();
    let shards = shards(2, &state, ms(50)).await;
    shards[0].pause().await.unwrap();
    let job = shards[0].add(async {}).await.unwrap();
    memory.restore(&queue(), None);
    shards[0].tick().await;
    assert!(memory.snapshot(&queue()).unwrap().paused);
    shards[1].resume().await.unwrap();
    shards[0].tick().await;
    job.await.unwrap();
}
