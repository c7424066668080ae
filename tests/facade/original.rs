//! What the sharded interval queue that this one grew from was tested for.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use crate::common::{Random, Starts, all_done, begun, memory, ms, queue, shards, with_ticket};

#[tokio::test(start_paused = true)]
async fn five_shards_with_random_adds_complete_in_order() {
    for seed in 0..10 {
        let (state, shards, starts) = begun(5, ms(10)).await;
        let mut random = Random(seed);
        let mut handles = Vec::new();
        for job in 0..200 {
            handles.push(with_ticket(&shards[random.below(5) as usize], starts.job(job)).await);
            if random.once_in(20) {
                shards[random.below(5) as usize].pause().await.unwrap();
                tokio::time::sleep(ms(random.below(1_000))).await;
                shards[random.below(5) as usize].resume().await.unwrap();
                shards.iter().for_each(|shard| shard.start());
            }
            tokio::time::sleep(ms(random.below(15))).await;
        }
        all_done(handles).await;
        assert_eq!(starts.jobs(), (0..200).collect::<Vec<_>>(), "seed {seed}");
        state.assert_spaced(ms(10));
    }
}

#[tokio::test(start_paused = true)]
async fn ten_shards_with_a_thousand_jobs_never_run_more_than_twenty() {
    let (_, state) = memory();
    let shards = shards(10, &state, ms(5)).await;
    shards[0].set_max_running(interval_queue::MaxRunning::AtMost(20)).await.unwrap();
    let running = Arc::new(AtomicUsize::new(0));
    let most = Arc::new(AtomicUsize::new(0));
    let mut random = Random(10);
    let mut handles = Vec::new();
    for job in 0..1_000 {
        let (running, most, length) = (running.clone(), most.clone(), random.below(400));
        let job_future = async move {
            most.fetch_max(running.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
            tokio::time::sleep(ms(length)).await;
            running.fetch_sub(1, Ordering::Relaxed);
        };
        handles.push(shards[job % 10].add(job_future).await.unwrap());
    }
    all_done(handles).await;
    let most = most.load(Ordering::Relaxed);
    assert!((15..=20).contains(&most), "{most} ran at once");
}

#[tokio::test(start_paused = true)]
async fn the_shared_state_survives_the_restart_of_all_shards() {
    let (memory, state) = memory();
    let starts = Starts::new();
    for round in 0..3 {
        let shards = shards(4, &state, ms(10)).await;
        let mut handles = Vec::new();
        for job in 0..20 {
            handles.push(with_ticket(&shards[job % 4], starts.job(round * 20 + job)).await);
        }
        assert_eq!(handles[0].ticket().await.unwrap().get(), round as u64 * 20 + 1);
        all_done(handles).await;
        for shard in shards {
            shard.close().await;
        }
    }
    assert_eq!(starts.jobs(), (0..60).collect::<Vec<_>>());
    assert_eq!(memory.snapshot(&queue()).unwrap().current.get(), 60);
    state.assert_spaced(ms(10));
}
