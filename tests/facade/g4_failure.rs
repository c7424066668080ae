//! G4: of n shards any n − 1 may die at any instant. The others keep pace; what a dead shard held costs at
//! most the slots that pass until its lease ends, and nothing after.

use interval_queue::IntervalQueue;
use interval_queue_conformance::Faulty;

use crate::common::{Random, Starts, all_done, memory, ms, shard, shards, wired, with_ticket};

#[tokio::test(start_paused = true)]
async fn a_dead_shard_costs_its_slots_until_its_lease_ends() {
    let (state, wire) = wired();
    let builder = IntervalQueue::builder("test").interval(ms(100)).linger(ms(0)).lease(ms(5_000));
    let dying = builder.open(wire.clone()).await.unwrap();
    let others = shards(3, &state, ms(100)).await;
    let starts = Starts::new();
    let mut handles = Vec::new();
    for job in 0..800 {
        if job % 4 == 0 {
            with_ticket(&dying, async {}).await;
        } else {
            handles.push(with_ticket(&others[job % 4 - 1], starts.job(job)).await);
        }
    }
    tokio::time::sleep(ms(2_000)).await;
    wire.change(|faults| faults.outage = true);
    let started_before_death = starts.all().len();
    all_done(handles).await;

    // Nominally the others' jobs that were left need a slot each; the dead shard's go by until its lease
    // ends.
    let left = (600 - started_before_death) as u32;
    let took = starts.all().last().unwrap().at - ms(2_000);
    let lost_slots = (took.as_secs_f64() / 0.1).round() as u32 - left;
    assert!(lost_slots <= 5_000 / 100 / 4 + 3, "{lost_slots} slots lost");
    state.assert_spaced(ms(100));
    let jobs = starts.jobs();
    assert!(jobs.is_sorted(), "order is kept: {jobs:?}");
}

#[tokio::test(start_paused = true)]
async fn the_last_shard_alive_goes_on() {
    let (_, state) = memory();
    let starts = Starts::new();
    let mut random = Random(4);
    let mut wires = Vec::new();
    let mut survivors = Vec::new();
    for number in 0..6 {
        let wire = Faulty::new(state.clone());
        let queue = shard(&wire, ms(50)).await;
        for job in 0..40 {
            let handle = queue.add(starts.job(number * 1_000 + job)).await.unwrap();
            if number == 5 {
                survivors.push(handle);
            }
        }
        wires.push(wire);
    }
    for wire in &wires[..5] {
        tokio::time::sleep(ms(random.below(400))).await;
        wire.change(|faults| faults.outage = true);
    }
    all_done(survivors).await;
    // Forty slots of its own, at most two leases of waiting, and what the dead started before.
    let last = starts.all().last().unwrap().at;
    assert!(last < ms(40 * 50 + 2 * 5_000 + 2_000), "{last:?}");
    state.assert_spaced(ms(50));
}

#[tokio::test(start_paused = true)]
async fn a_dead_shard_frees_its_share_of_the_running_limit() {
    let (state, wire) = wired();
    let builder = || IntervalQueue::builder("test").interval(ms(10)).max_running(2).lease(ms(3_000));
    let dying = builder().open(wire.clone()).await.unwrap();
    let other = builder().open(state.clone()).await.unwrap();
    for _ in 0..2 {
        dying.add(std::future::pending::<()>()).await.unwrap();
    }
    tokio::time::sleep(ms(100)).await;
    let job = other.add(async {}).await.unwrap();
    tokio::time::sleep(ms(2_000)).await;
    assert_eq!(other.waiting(), 1, "the limit holds while the shard lives");
    wire.change(|faults| faults.outage = true);
    tokio::time::timeout(ms(6_000), job).await.expect("the lease frees the share").unwrap();
}
