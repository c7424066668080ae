//! Several limits at once: what happens to one queue keeps the others from nothing.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use futures::FutureExt;
use interval_queue::{IntervalQueue, Limits, MemoryState};
use interval_queue_conformance::Faulty;
use tokio::time::{Instant, sleep};

use crate::{
    common::{Random, ms},
    places::{Crew, keep_busy, limits, open},
};

#[tokio::test(start_paused = true)]
async fn a_queue_that_is_paused_keeps_the_others_from_nothing() {
    for paused in [0, 1] {
        let places = [Crew::new("a", ms(40), 2).await, Crew::new("b", ms(10), 2).await];
        let (stopped, other) = (&places[paused], &places[1 - paused]);
        let limits = limits(&[&places[0], &places[1]], 0);
        stopped.shards[1].pause().await.unwrap();
        let joint: Vec<_> = (0..10)
            .map(|job| {
                let (limits, starts) = (limits.clone(), [places[0].starts.clone(), places[1].starts.clone()]);
                tokio::spawn(async move {
                    let _turns = limits.turn().await.unwrap();
                    starts.iter().for_each(|starts| starts.note(job));
                })
            })
            .collect();
        sleep(ms(50)).await;
        let began = Instant::now();
        keep_busy(other, &[0, 1], 1000).await;
        other.shards[0].wait_idle().now_or_never();
        while other.starts.all().len() < 1000 {
            sleep(ms(10)).await;
        }
        let took = began.elapsed();
        println!(
            "1000 jobs beside a paused queue took {took:?} at {:?}, lost {}",
            other.interval,
            other.lost()
        );
        assert!(took <= other.interval * 1010, "{took:?}");
        assert_eq!(stopped.starts.all().len(), 0);
        stopped.shards[0].resume().await.unwrap();
        for job in joint {
            tokio::time::timeout(ms(5_000), job).await.expect("they go on").unwrap();
        }
        places.iter().for_each(Crew::assert_spaced);
        assert!(other.lost() <= 2, "{}", other.lost());
        places[0].assert_left_nothing().await;
        places[1].assert_left_nothing().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_state_that_fails_keeps_the_other_queue_from_nothing() {
    let wire = Faulty::new(MemoryState::new());
    let lost = open("lost", &wire, ms(20)).await;
    let place = Crew::new("there", ms(10), 2).await;
    let limits = Limits::new([lost.clone(), place.shards[0].clone()]).unwrap();
    drop(limits.turn().await.unwrap());
    let before = place.state.slots().len();
    wire.change(|faults| faults.outage = true);
    let joint: Vec<_> = (0..5)
        .map(|_| {
            let limits = limits.clone();
            tokio::spawn(async move { limits.run(async {}).await })
        })
        .collect();
    sleep(ms(100)).await;
    let began = Instant::now();
    keep_busy(&place, &[0, 1], 500).await;
    place.shards[1].wait_idle().await;
    let took = began.elapsed();
    assert!(took <= ms(5_050), "{took:?}");
    sleep(ms(60_000)).await;
    println!("slots used beside an outage: {} of 500", place.state.slots().len() - before);
    assert!(place.state.slots().len() - before <= 505);
    wire.change(|faults| faults.outage = false);
    for job in joint {
        tokio::time::timeout(ms(30_000), job).await.expect("it goes on").unwrap().unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_shard_that_dies_with_joint_jobs_costs_a_lease() {
    for seed in 0..10 {
        let mut random = Random(seed);
        let states = [MemoryState::new(), MemoryState::new()];
        let wires = states.clone().map(Faulty::new);
        let names = [("a", ms(40)), ("b", ms(10))];
        let (mut dying, mut living) = (Vec::new(), Vec::new());
        for ((name, interval), (state, wire)) in names.iter().zip(states.iter().zip(&wires)) {
            dying.push(open(name, wire, *interval).await);
            living.push(open(name, state, *interval).await);
        }
        let limits = [Limits::new(dying).unwrap(), Limits::new(living.clone()).unwrap()];
        let done = Arc::new(AtomicUsize::new(0));
        let mut tasks = Vec::new();
        for job in 0..100 {
            let (limits, done) = (limits[job % 2].clone(), done.clone());
            tasks.push(tokio::spawn(async move {
                limits.run(async {}).await.unwrap();
                done.fetch_add(job % 2, Ordering::Relaxed);
            }));
        }
        sleep(ms(random.below(2_000))).await;
        // All at once, as a process is killed: it says nothing any more.
        wires.iter().for_each(|wire| wire.change(|faults| faults.outage = true));
        (0..100).step_by(2).for_each(|job| tasks[job].abort());
        sleep(ms(5_000 + 50 * 45 + 500)).await;
        assert_eq!(done.load(Ordering::Relaxed), 50, "seed {seed}");
        for queue in living {
            queue.wait_idle().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn long_jobs_delay_joint_ones_but_not_forever() {
    for seed in 0..5 {
        let mut random = Random(seed);
        let states = [MemoryState::new(), MemoryState::new()];
        let mut queues = Vec::new();
        for (name, interval, state) in [("a", ms(50), &states[0]), ("b", ms(10), &states[1])] {
            for _ in 0..2 {
                let builder = IntervalQueue::builder(name).interval(interval).linger(ms(0)).max_running(2);
                queues.push(builder.open(state.clone()).await.unwrap());
            }
        }
        let most = Arc::new(AtomicUsize::new(0));
        let mut tasks = Vec::new();
        for job in 0..100 {
            let (length, most) = (ms(random.below(200)), most.clone());
            let joint = Limits::new([queues[job % 2].clone(), queues[2 + job % 2].clone()]).unwrap();
            let single = queues[job % 4].clone();
            tasks.push(tokio::spawn(async move {
                if job % 3 == 0 {
                    let _turn = single.turn().await.unwrap();
                    sleep(length).await;
                } else {
                    let _turns = joint.turn().await.unwrap();
                    assert!(most.fetch_add(1, Ordering::Relaxed) < 2, "at most two run");
                    sleep(length).await;
                    most.fetch_sub(1, Ordering::Relaxed);
                }
            }));
        }
        let began = Instant::now();
        for task in tasks {
            tokio::time::timeout(ms(120_000), task).await.expect("all run").unwrap();
        }
        println!("seed {seed}: {:?}", began.elapsed());
        for queue in queues {
            queue.wait_idle().await;
        }
    }
}
