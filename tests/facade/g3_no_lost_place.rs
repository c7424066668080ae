//! G3: a ticket is good until it is used. A shard that misses its slot loses the slot, never the job.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    time::Duration,
};

use interval_queue::{IntervalQueue, JobOptions, Late, MemoryState};
use interval_queue_conformance::Faulty;
use tokio::time::{Instant, sleep, timeout};

use crate::common::{Starts, add_in_turn, all_done, begun, ms, shard, shards, wired, with_ticket};

#[tokio::test(start_paused = true)]
async fn a_late_ticket_takes_the_next_free_slot_before_younger_ones() {
    let (state, cut_off) = wired();
    let slow = shard(&cut_off, ms(100)).await;
    let others = shards(2, &state, ms(100)).await;
    let starts = Starts::new();
    let mut handles = Vec::new();
    for job in 0..60 {
        let shard = if job == 10 { &slow } else { &others[job % 2] };
        handles.push(with_ticket(shard, starts.job(job)).await);
    }
    cut_off.change(|faults| faults.outage = true);
    tokio::time::sleep(ms(2_050)).await;
    assert!(!starts.jobs().contains(&10));
    cut_off.change(|faults| faults.outage = false);
    slow.tick().await;
    all_done(handles).await;

    let jobs = starts.jobs();
    let place = jobs.iter().position(|job| *job == 10).unwrap();
    assert!((19..=23).contains(&place), "job 10 came as number {place}");
    let rest: Vec<_> = jobs.iter().copied().filter(|job| *job != 10).collect();
    assert!(rest.is_sorted(), "{rest:?}");
    state.assert_spaced(ms(100));
}

#[tokio::test(start_paused = true)]
async fn requeue_sends_a_late_ticket_to_the_back() {
    let (state, cut_off) = wired();
    let builder = IntervalQueue::builder("test").interval(ms(100)).late(Late::Requeue);
    let slow = builder.open(cut_off.clone()).await.unwrap();
    let other = shard(&state, ms(100)).await;
    let starts = Starts::new();
    let mut handles = Vec::new();
    for job in 0..40 {
        let shard = if job == 10 { &slow } else { &other };
        handles.push(shard.add(starts.job(job)).await.unwrap());
    }
    cut_off.change(|faults| faults.outage = true);
    tokio::time::sleep(ms(2_050)).await;
    cut_off.change(|faults| faults.outage = false);
    slow.tick().await;
    all_done(handles).await;
    assert_eq!(starts.jobs().last(), Some(&10));
    state.assert_spaced(ms(100));
}

#[tokio::test(start_paused = true)]
async fn a_pause_loses_nothing() {
    let (state, shards, starts) = begun(3, ms(10)).await;
    let handles = add_in_turn(&shards, &starts, 90).await;
    tokio::time::sleep(ms(200)).await;
    shards[1].pause().await.unwrap();
    // Longer than any lease: the record has forgotten who waits.
    tokio::time::sleep(ms(60_000)).await;
    let paused_at = starts.all().len();
    assert!(paused_at < 30, "{paused_at}");
    shards[2].resume().await.unwrap();
    for shard in &shards {
        shard.tick().await;
    }
    all_done(handles).await;
    starts.assert_each_once(0..90);
    state.assert_spaced(ms(10));
}

/// How long a job of a shard near the state waits while one far from it is busy; with `restart`, after a
/// pause from which it comes back late.
async fn waited(way: u64, interval: u64, restart: bool, weight: u32) -> Option<Duration> {
    let memory = MemoryState::new();
    let far = Faulty::new(memory.clone());
    far.change(|faults| (faults.delay_before, faults.delay_after) = (ms(way), ms(way)));
    let near = memory.clone();
    let builder = || IntervalQueue::builder("test").interval(ms(interval));
    let (a, b) = (builder().open(far).await.unwrap(), builder().open(near).await.unwrap());
    let ended = Arc::new(AtomicBool::new(false));
    let feeder = tokio::spawn({
        let (a, ended) = (a.clone(), ended.clone());
        async move {
            while !ended.load(SeqCst) {
                for job in futures::future::join_all((0..20).map(|_| a.add(async {}))).await {
                    job.unwrap();
                }
                while a.waiting() > 60 {
                    sleep(ms(1)).await;
                }
            }
        }
    });
    sleep(ms(2000)).await;
    if restart {
        b.pause().await.unwrap();
        sleep(ms(2000)).await;
    }
    let began = Instant::now();
    let job = b.job(async {}).options(JobOptions::new().weight(weight)).add().await.unwrap();
    if restart {
        // The pause outlasts the lease of the near shard; the far one goes on first.
        sleep(ms(10_000)).await;
        a.resume().await.unwrap();
        sleep(ms(5_000)).await;
        b.tick().await;
    }
    let ran = timeout(Duration::from_secs(120), job).await.is_ok();
    ended.store(true, SeqCst);
    feeder.await.unwrap();
    ran.then(|| began.elapsed())
}

#[tokio::test(start_paused = true)]
async fn a_late_ticket_of_a_near_shard_is_not_starved_by_a_far_one() {
    for (way, interval) in [(0, 20), (5, 5), (50, 20), (100, 20)] {
        for (restart, weight) in [(true, 1), (false, 2)] {
            let waited = waited(way, interval, restart, weight).await;
            let soon = waited.is_some_and(|waited| waited < Duration::from_secs(30));
            assert!(
                soon,
                "way {way} ms, interval {interval} ms, restart {restart}, weight {weight}: {waited:?}"
            );
        }
    }
}
