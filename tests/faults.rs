//! All faults at once, at random, on virtual time: what holds through every one of them.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use std::time::Duration;

use common::{Random, Starts, memory, ms, queue};
use interval_queue::{IntervalQueue, Late, contract::Micros};
use interval_queue_conformance::{Faults, Faulty};
use tokio::runtime::Handle;

const SEEDS: std::ops::Range<u64> = 0..100;

/// Milliseconds that are mostly few.
fn few(random: &mut Random, most: u64) -> Duration {
    let most = [most / 100 + 1, most / 10 + 1, most][random.below(3) as usize];
    ms(random.below(most))
}

async fn run(seed: u64, lose_state: bool) {
    let mut random = Random(seed);
    let (memory, state) = memory();
    let interval = ms([5, 20, 100][random.below(3) as usize]);
    let count = 2 + random.below(4) as usize;
    let mut shards = Vec::new();
    let mut wires = Vec::new();
    for number in 0..count {
        let wire = Faulty::new(state.clone()).seeded(seed * 100 + number as u64);
        let late = if random.once_in(5) { Late::Requeue } else { Late::NextSlot };
        let builder = IntervalQueue::builder("test").interval(interval).lease(ms(2_000)).late(late);
        let builder = if seed.is_multiple_of(3) { builder.max_running(2) } else { builder };
        shards.push(builder.open(wire.clone()).await.unwrap());
        wires.push(wire);
    }

    let starts = Starts::new();
    let mut handles = Vec::new();
    let mut copy = None;
    let mut losses = 0;
    for job in 0..120 {
        let at = random.below(count as u64) as usize;
        match random.below(30) {
            0 => wires[at].change(|faults| faults.outage = !faults.outage),
            1 => {
                let (lost, delay) = (random.below(3) as f64 / 10.0, few(&mut random, 400));
                wires[at].set(Faults {
                    lose_request: lost,
                    lose_reply: lost,
                    time_out: ms(200),
                    delay_before: delay,
                    delay_after: delay,
                    vary_delays: true,
                    ..Faults::default()
                });
            }
            2 => drop(tokio::time::timeout(ms(300), shards[at].pause()).await),
            3 | 4 => drop(tokio::time::timeout(ms(300), shards[at].resume()).await),
            5 => drop(tokio::time::timeout(ms(300), shards[at].hold(few(&mut random, 2_000))).await),
            6 => shards[at].start(),
            7 if lose_state => copy = memory.snapshot(&queue()),
            8 if lose_state => {
                losses += 1;
                memory.restore(&queue(), if random.once_in(2) { None } else { copy.clone() });
            }
            _ => {}
        }
        let (start, length) = (starts.job(job), few(&mut random, 300));
        let adding = shards[at].add(async move {
            start.await;
            tokio::time::sleep(length).await;
        });
        // An add that takes too long is given up, and its job must not run.
        match tokio::time::timeout(ms(3_000), adding).await {
            Ok(handle) => handles.push((job, handle.unwrap())),
            Err(_) => handles.retain(|(other, _)| *other != job),
        }
        if random.once_in(10) && !handles.is_empty() {
            let place = random.below(handles.len() as u64) as usize;
            if handles[place].1.cancel() {
                drop(handles.swap_remove(place));
            }
        }
        tokio::time::sleep(few(&mut random, 200)).await;
    }
    for wire in &wires {
        wire.set(Faults::default());
    }
    // A shard may be the only one to remember a pause: it tells with its tick, and only then can everybody resume.
    for _ in 0..2 {
        shards[0].resume().await.unwrap();
        for shard in &shards {
            shard.tick().await;
        }
    }

    let mut expected = Vec::new();
    for (job, handle) in handles {
        let result = tokio::time::timeout(ms(300_000), handle).await;
        result.unwrap_or_else(|_| panic!("seed {seed}: job {job} is stuck")).unwrap();
        expected.push(job);
    }
    for shard in &shards {
        tokio::time::timeout(ms(60_000), shard.wait_idle())
            .await
            .unwrap_or_else(|_| panic!("seed {seed}: not idle"));
    }
    let mut started = starts.jobs();
    started.sort();
    expected.sort();
    assert_eq!(started, expected, "seed {seed}: each job once, a cancelled one never");

    let least = Micros::from_duration(interval);
    let slots = state.slots();
    let early = slots.windows(2).filter(|pair| pair[1].at - pair[0].at < least).count();
    assert!(early <= losses, "seed {seed}: {early} slots too close after {losses} losses");
    tokio::time::sleep(ms(5_000)).await;
    assert_eq!(Handle::current().metrics().num_alive_tasks(), 0, "seed {seed}: a task is left");
}

#[tokio::test(start_paused = true)]
async fn whatever_the_network_and_people_do_nothing_is_lost_doubled_or_too_close() {
    for seed in SEEDS {
        run(seed, false).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_state_that_forgets_brings_at_most_one_early_start_each_time() {
    for seed in SEEDS {
        run(seed, true).await;
    }
}
