//! Several limits at once: a job starts when each of its queues has a slot for it.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test that gets no error fails, and says so")]

mod common;

use std::{sync::Arc, time::Duration};

use common::{Noting, Random, Starts, memory, ms};
use futures::{FutureExt, future::join_all};
use interval_queue::{
    Error, ErrorKind, IntervalQueue, JobGroup, JobOptions, Limits, MemoryState, SharedState,
};
use interval_queue_conformance::Faulty;
use tokio::time::sleep;

/// What timers of virtual time are coarse by, and what a start may be late without moving another.
const COARSE: Duration = Duration::from_millis(2);

async fn open(name: &str, state: &(impl SharedState + Clone), interval: Duration) -> IntervalQueue {
    let builder = IntervalQueue::builder(name).interval(interval).linger(ms(0));
    builder.open(state.clone()).await.unwrap()
}

/// A queue with a state of its own, opened by several shards, and what started in it.
struct Place {
    state: Noting,
    shards: Vec<IntervalQueue>,
    starts: Starts,
    interval: Duration,
}

impl Place {
    async fn new(name: &str, interval: Duration, shards: usize) -> Self {
        let (_, state) = memory();
        let shards = join_all((0..shards).map(|_| open(name, &state, interval))).await;
        Self { state, shards, starts: Starts::new(), interval }
    }

    /// Starts are never nearer than the interval.
    fn assert_spaced(&self) {
        self.state.assert_spaced(self.interval);
        let mut starts = self.starts.all();
        starts.sort_by_key(|start| start.at);
        for pair in starts.windows(2) {
            let gap = pair[1].at - pair[0].at;
            assert!(gap + COARSE >= self.interval, "{gap:?} of {:?}: {pair:?}", self.interval);
        }
    }

    /// How many slots were granted that nothing started in.
    fn lost(&self) -> usize {
        self.state.slots().len() - self.starts.all().len()
    }

    async fn assert_left_nothing(&self) {
        for shard in &self.shards {
            tokio::time::timeout(ms(60_000), shard.wait_idle()).await.unwrap();
            assert_eq!((shard.waiting(), shard.running()), (0, 0));
        }
    }
}

fn kind<T>(result: Result<T, Error>) -> ErrorKind {
    result.err().map(|error| error.kind()).expect("an error")
}

#[tokio::test(start_paused = true)]
async fn a_joint_job_starts_at_once_where_nothing_waits() {
    let (a, b) = (Place::new("a", ms(100), 1).await, Place::new("b", ms(10), 1).await);
    let limits = Limits::new([a.shards[0].clone(), b.shards[0].clone()]).unwrap();
    let clock = Starts::new();
    for job in 0..5 {
        let turns = limits.turn().await.unwrap();
        assert_eq!(turns.as_slice().len(), 2);
        clock.note(job);
        a.starts.note(job);
    }
    let last = clock.all()[4].at;
    assert!(clock.all()[0].at <= ms(2), "{:?}", clock.all());
    assert!(last >= ms(400) && last <= ms(420), "{last:?}");
    a.assert_spaced();
    assert_eq!((a.lost(), b.state.slots().len()), (0, 5));
    a.assert_left_nothing().await;
    b.assert_left_nothing().await;
}

async fn mix(seed: u64) {
    let places = [
        Arc::new(Place::new("a", ms(100), 3).await),
        Arc::new(Place::new("b", ms(10), 3).await),
        Arc::new(Place::new("c", ms(37), 3).await),
    ];
    let mut random = Random(seed);
    let mut tasks = Vec::new();
    for job in 0..200 {
        let shard = random.below(3) as usize;
        let pause = ms(random.below(8000));
        let mut chosen: Vec<_> = places.iter().filter(|_| !random.once_in(3)).cloned().collect();
        if random.once_in(2) {
            chosen.reverse();
        }
        let single = random.once_in(2);
        tasks.push(tokio::spawn(async move {
            sleep(pause).await;
            match (single, chosen.first()) {
                (true, Some(place)) => {
                    let _turn = place.shards[shard].turn().await.unwrap();
                    place.starts.note(job);
                }
                (false, Some(_)) => {
                    let limits = chosen.iter().map(|place| place.shards[shard].clone());
                    let _turns = Limits::new(limits).unwrap().turn().await.unwrap();
                    chosen.iter().for_each(|place| place.starts.note(job));
                }
                (_, None) => {}
            }
        }));
    }
    for task in tasks {
        tokio::time::timeout(ms(600_000), task).await.expect("every job starts").unwrap();
    }
    for place in &places {
        place.assert_spaced();
        place.assert_left_nothing().await;
    }
    let lost: Vec<_> = places.iter().map(|place| (place.lost(), place.starts.all().len())).collect();
    println!("seed {seed}: lost and used {lost:?}, {:?}", places[0].starts.all().last().unwrap().at);
}

#[tokio::test(start_paused = true)]
async fn no_queue_starts_faster_than_its_pace() {
    for seed in 0..20 {
        mix(seed).await;
    }
}

/// A limits of the first shard of each place.
fn limits(places: &[&Place], shard: usize) -> Limits {
    Limits::new(places.iter().map(|place| place.shards[shard].clone())).unwrap()
}

#[tokio::test(start_paused = true)]
async fn opposite_orders_block_nobody() {
    for interval in [10, 40] {
        let (a, b) =
            (Arc::new(Place::new("a", ms(40), 2).await), Arc::new(Place::new("b", ms(interval), 2).await));
        let tasks = (0..200).map(|job| {
            let (a, b) = (a.clone(), b.clone());
            tokio::spawn(async move {
                let shard = job / 2 % 2;
                let limits = if job % 2 == 0 { limits(&[&a, &b], shard) } else { limits(&[&b, &a], shard) };
                let _turns = limits.turn().await.unwrap();
                a.starts.note(job);
                b.starts.note(job);
            })
        });
        let all = tokio::time::timeout(ms(60_000), join_all(tasks)).await.expect("all run");
        all.into_iter().for_each(Result::unwrap);
        let last = a.starts.all().last().unwrap().at;
        println!("interval {interval}: 200 at 40 ms in {last:?}, lost {} and {}", a.lost(), b.lost());
        assert!(last <= ms(9_000), "{last:?}");
        a.assert_spaced();
        b.assert_spaced();
        a.assert_left_nothing().await;
        b.assert_left_nothing().await;
    }
}

/// Adds enough single jobs to two shards of a place to keep it busy for that long.
async fn keep_busy(place: &Place, shards: &[usize], jobs: usize) {
    for job in 0..jobs {
        let shard = &place.shards[shards[job % shards.len()]];
        shard.add(place.starts.job(10_000 + job)).await.unwrap().detach();
    }
}

#[tokio::test(start_paused = true)]
async fn while_a_customer_is_the_bottleneck_no_slot_of_the_others_is_wasted() {
    let (customer, all) = (Place::new("customer", ms(1000), 1).await, Place::new("all", ms(10), 4).await);
    keep_busy(&all, &[1, 2], 50).await;
    let limits = limits(&[&customer, &all], 0);
    let joint = join_all((0..20).map(|job| {
        let (limits, customer, all) = (limits.clone(), &customer, &all);
        async move {
            let _turns = limits.turn().await.unwrap();
            customer.starts.note(job);
            all.starts.note(job);
        }
    }));
    let busy = async {
        for _ in 0..40 {
            keep_busy(&all, &[1, 2, 3], 50).await;
            sleep(ms(480)).await;
        }
    };
    tokio::join!(joint, busy);
    for shard in &all.shards {
        shard.wait_idle().await;
    }
    let singles: Vec<_> = all.starts.all().into_iter().filter(|start| start.job >= 10_000).collect();
    let until = singles.last().unwrap().at;
    let within = all.starts.all().iter().filter(|start| start.at <= until).count();
    let nominal = until.as_secs_f64() * 100.0;
    println!("{within} starts of {nominal} slots; customer {:?}", customer.starts.all());
    println!("lost: customer {}, all {}", customer.lost(), all.lost());
    assert!(within as f64 >= nominal * 0.99, "{within} of {nominal}");
    let last = customer.starts.all().last().unwrap().at;
    // Each waits a slot of the overall line at most, by which the customer's next slot then moves.
    assert!(last <= ms(20_300), "{last:?}");
    customer.assert_spaced();
    all.assert_spaced();
}

#[tokio::test(start_paused = true)]
async fn where_the_line_of_all_is_long_joint_jobs_keep_their_place() {
    let (customer, all) = (Place::new("customer", ms(100), 1).await, Place::new("all", ms(10), 4).await);
    keep_busy(&all, &[1, 2], 400).await;
    let limits = limits(&[&customer, &all], 0);
    let began = tokio::time::Instant::now();
    let joint: Vec<_> = (0..20)
        .map(|job| {
            let (limits, starts, customer) = (limits.clone(), all.starts.clone(), customer.starts.clone());
            tokio::spawn(async move {
                sleep(ms(100)).await;
                let _turns = limits.turn().await.unwrap();
                starts.note(job);
                customer.note(job);
                began.elapsed()
            })
        })
        .collect();
    sleep(ms(150)).await;
    keep_busy(&all, &[1, 2, 3], 600).await;
    let mut at = Vec::new();
    for job in joint {
        at.push(job.await.unwrap());
    }
    for shard in &all.shards {
        shard.wait_idle().await;
    }
    let starts = all.starts.all();
    let last = starts.last().unwrap().at;
    let lost = last.as_secs_f64() * 100.0 - starts.len() as f64;
    let halves: Vec<_> = (0..26)
        .map(|half| starts.iter().filter(|start| start.at.as_millis() / 500 == half).count())
        .collect();
    println!("starts in each half second {halves:?}");
    let slow: Vec<_> = starts
        .windows(2)
        .filter(|pair| pair[1].at - pair[0].at > ms(11))
        .map(|pair| (pair[0].at, pair[1].at - pair[0].at))
        .collect();
    println!("{slow:?}");
    println!(
        "joint started at {at:?}; {lost} slots of all lost for 20 joint jobs, granted unused {}",
        all.lost()
    );
    // The first is behind 400, the others wait for their customer.
    assert!(at[0] <= ms(4_050), "{:?}", at[0]);
    assert!(at[19] <= ms(4_050 + 19 * 110), "{:?}", at[19]);
    assert!(lost <= 20.0, "{lost}");
    assert!(customer.lost() <= 2, "{}", customer.lost());
    customer.assert_spaced();
    all.assert_spaced();
}

#[tokio::test(start_paused = true)]
async fn a_queue_that_is_paused_keeps_the_others_from_nothing() {
    for paused in [0, 1] {
        let places = [Place::new("a", ms(40), 2).await, Place::new("b", ms(10), 2).await];
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
        let began = tokio::time::Instant::now();
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
        places.iter().for_each(Place::assert_spaced);
        assert!(other.lost() <= 2, "{}", other.lost());
        places[0].assert_left_nothing().await;
        places[1].assert_left_nothing().await;
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_stops_waiting_leaves_no_place_behind() {
    for seed in 0..10 {
        let mut random = Random(seed);
        let places = [Place::new("a", ms(50), 2).await, Place::new("b", ms(10), 2).await];
        let mut tasks = Vec::new();
        for job in 0..100 {
            let limits = limits(&[&places[0], &places[1]], job % 2);
            let (patience, pause) = (ms(random.below(1500)), ms(random.below(1000)));
            let starts = [places[0].starts.clone(), places[1].starts.clone()];
            tasks.push(tokio::spawn(async move {
                sleep(pause).await;
                if let Ok(turns) = tokio::time::timeout(patience, limits.turn()).await {
                    starts.iter().for_each(|starts| starts.note(job));
                    drop(turns);
                }
            }));
        }
        for task in tasks {
            task.await.unwrap();
        }
        for place in &places {
            place.assert_left_nothing().await;
            place.assert_spaced();
        }
        // Nothing is left in the record, and the pace is as it was.
        for place in &places {
            let began = tokio::time::Instant::now();
            for _ in 0..20 {
                drop(place.shards[0].turn().await.unwrap());
                drop(place.shards[1].turn().await.unwrap());
            }
            let took = began.elapsed();
            assert!(took <= place.interval * 42, "{took:?} for 40 at {:?}", place.interval);
        }
        let used: Vec<_> = places.iter().map(|place| place.starts.all().len()).collect();
        println!("seed {seed}: {used:?} started");
    }
}

#[tokio::test(start_paused = true)]
async fn dropped_at_any_await_a_turn_leaves_nothing() {
    for polls in 0..60 {
        let places = [Place::new("a", ms(50), 1).await, Place::new("b", ms(10), 1).await];
        keep_busy(&places[1], &[0], 5).await;
        keep_busy(&places[0], &[0], 2).await;
        let limits = limits(&[&places[0], &places[1]], 0);
        {
            let mut turn = Box::pin(limits.turn());
            for _ in 0..polls {
                if turn.as_mut().now_or_never().is_some() {
                    break;
                }
                sleep(ms(2)).await;
            }
        }
        for place in &places {
            place.assert_left_nothing().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_options_of_a_job_hold_in_all_its_queues() {
    let places = [Place::new("a", ms(100), 2).await, Place::new("b", ms(10), 2).await];
    let limits = limits(&[&places[0], &places[1]], 0);
    keep_busy(&places[0], &[0, 1], 20).await;

    // The latest start.
    let within = |limit| JobOptions::new().start_within(ms(limit));
    let error = limits.turn_with(within(500)).await.map(|_| ()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLate);
    assert!(error.to_string().starts_with("the job would start in 1.9s"), "{error}");
    assert_eq!((places[0].shards[0].waiting(), places[1].shards[0].waiting()), (9, 0));
    places[1].shards[1].pause().await.unwrap();
    assert_eq!(kind(limits.turn_with(within(2_500)).await), ErrorKind::TooLate);
    places[1].shards[1].resume().await.unwrap();
    assert_eq!(kind(limits.turn_with(within(0)).await), ErrorKind::Invalid);

    // Groups.
    let group = JobGroup::new();
    let waits = tokio::spawn({
        let (limits, options) = (limits.clone(), JobOptions::new().group(&group));
        async move { limits.run_with(options, async {}).await }
    });
    keep_busy(&places[0], &[0, 1], 20).await;
    assert!(group.cancel() <= 2);
    assert_eq!(kind(limits.turn_with(JobOptions::new().group(&group)).await), ErrorKind::Cancelled);
    let _ = waits.await.unwrap();

    // A limit to the run, a panic, a priority.
    let long = limits.run_with(JobOptions::new().timeout(ms(70)), std::future::pending::<()>()).await;
    assert_eq!(kind(long), ErrorKind::TimedOut);
    assert_eq!(kind(limits.turn_with(JobOptions::new().timeout(ms(70))).await), ErrorKind::Invalid);
    assert_eq!(kind(limits.run(async { panic!("no") }).await), ErrorKind::Panicked);
    keep_busy(&places[0], &[0], 50).await;
    let began = tokio::time::Instant::now();
    limits.run_with(JobOptions::new().priority(1), async {}).await.unwrap();
    assert!(began.elapsed() <= ms(250), "{:?}", began.elapsed());
    assert_eq!(limits.run(async { 7 }).await.unwrap(), 7);
    for place in &places {
        place.assert_left_nothing().await;
    }
}

#[tokio::test(start_paused = true)]
async fn each_queue_has_its_own_weight() {
    let (requests, tokens) = (Place::new("requests", ms(50), 1).await, Place::new("tokens", ms(1), 1).await);
    let limits = limits(&[&requests, &tokens], 0);
    let clock = Starts::new();
    for job in 0..3 {
        drop(limits.weighing([1, 350]).unwrap().turn().await.unwrap());
        clock.note(job);
    }
    assert!(clock.gaps().iter().all(|gap| *gap >= ms(348) && *gap <= ms(360)), "{:?}", clock.gaps());
    let error = limits.weighing([1]).map(|_| ()).unwrap_err();
    assert_eq!(error.to_string(), "1 weights for 2 queues: give one for each");
    assert_eq!(kind(limits.weighing([0, 1]).unwrap().turn().await), ErrorKind::Invalid);
    let both = limits.weighing([1, 1]).unwrap().turn_with(JobOptions::new().weight(2)).await;
    assert_eq!(kind(both), ErrorKind::Invalid);
}

#[tokio::test(start_paused = true)]
async fn the_same_queue_twice_is_refused() {
    let state = MemoryState::new();
    let one = open("one", &state, ms(10)).await;
    let again = open("one", &state, ms(10)).await;
    let elsewhere = open("one", &MemoryState::new(), ms(10)).await;
    assert_eq!(kind(Limits::new([])), ErrorKind::Invalid);
    let error = Limits::new([one.clone(), one.clone()]).unwrap_err();
    assert_eq!((error.kind(), error.to_string().contains("one")), (ErrorKind::Invalid, true));
    let twice = Limits::new([one.clone(), again]).unwrap();
    for _ in 0..2 {
        let error = twice.turn().await.map(|_| ()).unwrap_err();
        assert_eq!((error.kind(), error.to_string().contains("one")), (ErrorKind::Invalid, true));
    }
    Limits::new([one.clone(), elsewhere]).unwrap().run(async {}).await.unwrap();
    one.wait_idle().await;
}

#[tokio::test(start_paused = true)]
async fn a_state_that_fails_keeps_the_other_queue_from_nothing() {
    let wire = Faulty::new(MemoryState::new());
    let lost = open("lost", &wire, ms(20)).await;
    let place = Place::new("there", ms(10), 2).await;
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
    let began = tokio::time::Instant::now();
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
async fn a_queue_that_closes_ends_the_job_and_frees_the_others() {
    let places = [Place::new("a", ms(100), 1).await, Place::new("b", ms(10), 1).await];
    keep_busy(&places[0], &[0], 50).await;
    let limits = limits(&[&places[0], &places[1]], 0);
    let joint = tokio::spawn({
        let limits = limits.clone();
        async move { limits.run(async {}).await }
    });
    sleep(ms(500)).await;
    places[0].shards[0].shutdown(ms(100)).await;
    assert_eq!(kind(joint.await.unwrap()), ErrorKind::Cancelled);
    assert_eq!(kind(limits.turn().await), ErrorKind::Closed);
    places[1].assert_left_nothing().await;
}

#[tokio::test(start_paused = true)]
async fn what_a_joint_job_costs() {
    let wires = [Faulty::new(MemoryState::new()), Faulty::new(MemoryState::new())];
    let queues = [open("a", &wires[0], ms(100)).await, open("b", &wires[1], ms(10)).await];
    let limits = Limits::new(queues.clone()).unwrap();
    let total = || wires.iter().map(|wire| wire.counts()).collect::<Vec<_>>();
    sleep(ms(5_000)).await;
    let mut last = total();
    let mut tell = |what: &str| {
        let now = total();
        let steps: Vec<_> = now
            .iter()
            .zip(&last)
            .map(|(now, last)| (now.steps - last.steps, now.changes - last.changes, now.reads - last.reads))
            .collect();
        println!("{what}: steps, changes, reads {steps:?}");
        last = now;
    };
    for _ in 0..10 {
        drop(queues[0].turn().await.unwrap());
        queues[0].wait_idle().await;
        sleep(ms(5_000)).await;
    }
    tell("10 single, idle");
    for _ in 0..10 {
        drop(limits.turn().await.unwrap());
        sleep(ms(5_000)).await;
    }
    tell("10 joint, idle");
    join_all((0..100).map(|_| queues[0].turn())).await.into_iter().for_each(drop);
    tell("100 single in a line");
    join_all((0..100).map(|_| limits.turn())).await.into_iter().for_each(drop);
    tell("100 joint in a line");
    drop(join_all((0..1000).map(|_| queues[1].turn())).await);
    tell("1000 single fast in a line");
    let busy = join_all((0..1000).map(|_| queues[1].turn()));
    let joint = join_all((0..100).map(|_| limits.turn()));
    let _ = tokio::join!(busy, joint);
    tell("100 joint beside 1000 fast");
}

#[tokio::test(start_paused = true)]
async fn where_answers_take_long_the_pace_is_kept_all_the_same() {
    for trip in [1, 5, 20] {
        let mut queues = Vec::new();
        let mut starts = Vec::new();
        for (name, interval) in [("a", 100), ("b", 20)] {
            let (_, state) = memory();
            let wire = Faulty::new(state.clone());
            wire.change(|faults| (faults.delay_before, faults.delay_after) = (ms(trip) / 2, ms(trip) / 2));
            queues.push(vec![open(name, &wire, ms(interval)).await, open(name, &wire, ms(interval)).await]);
            starts.push((Starts::new(), state));
        }
        let began = tokio::time::Instant::now();
        let mut tasks = Vec::new();
        for job in 0..100 {
            let limits = Limits::new([queues[0][job % 2].clone(), queues[1][job % 2].clone()]).unwrap();
            let starts: Vec<_> = starts.iter().map(|(starts, _)| starts.clone()).collect();
            tasks.push(tokio::spawn(async move {
                let _turns = limits.turn().await.unwrap();
                starts.iter().for_each(|starts| starts.note(job));
            }));
        }
        for task in tasks {
            task.await.unwrap();
        }
        let least: Vec<_> = starts.iter().map(|(starts, _)| *starts.gaps().iter().min().unwrap()).collect();
        let lost: Vec<_> =
            starts.iter().map(|(starts, state)| state.slots().len() - starts.all().len()).collect();
        println!(
            "round trip {trip} ms: 100 joint in {:?}, least gaps {least:?}, lost {lost:?}",
            began.elapsed()
        );
    }
}
