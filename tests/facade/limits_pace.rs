//! Several limits at once: no queue starts faster than its pace, and none is kept from it.

use std::{sync::Arc, time::Duration};

use futures::future::join_all;
use interval_queue::{IntervalQueue, Limits, MemoryState};
use interval_queue_conformance::Faulty;
use tokio::time::{Instant, sleep};

use crate::{
    common::{Random, Starts, ms},
    places::{COARSE, Crew, keep_busy, limits, open},
};

/// Jobs that need one, two or three queues in any order, over three shards.
async fn mix(seed: u64, trip: Duration) {
    let places = [
        Arc::new(Crew::at("a", ms(100), 3, trip).await),
        Arc::new(Crew::at("b", ms(10), 3, trip).await),
        Arc::new(Crew::at("c", ms(37), 3, trip).await),
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
        place.state.assert_spaced(place.interval);
        // A start is late by what the answers of two other queues take, more or less. Beyond half an interval
        // nobody can be told in time.
        let bounded = trip <= ms(4);
        assert!(
            !bounded || place.least_gap() + COARSE + trip.max(COARSE) * 3 >= place.interval,
            "{:?}",
            place.least_gap()
        );
        place.assert_left_nothing().await;
        let most = place.starts.all().len() / if bounded { 10 } else { 3 };
        assert!(place.lost() <= most, "{} lost", place.lost());
    }
    let lost: Vec<_> = places.iter().map(|place| (place.lost(), place.starts.all().len())).collect();
    let gaps: Vec<_> = places.iter().map(|place| place.least_gap()).collect();
    println!("seed {seed}, {trip:?}: lost and used {lost:?}, least gaps {gaps:?}");
}

#[tokio::test(start_paused = true)]
async fn no_queue_starts_faster_than_its_pace() {
    for seed in 0..20 {
        mix(seed, Duration::ZERO).await;
    }
}

#[tokio::test(start_paused = true)]
async fn nor_where_answers_take_long() {
    for seed in 0..20 {
        mix(seed, ms([1, 4, 15, 40][seed as usize % 4])).await;
    }
}

#[tokio::test(start_paused = true)]
async fn opposite_orders_block_nobody() {
    for interval in [10, 40] {
        let (a, b) =
            (Arc::new(Crew::new("a", ms(40), 2).await), Arc::new(Crew::new("b", ms(interval), 2).await));
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

#[tokio::test(start_paused = true)]
async fn a_bottleneck_wastes_no_slot_of_the_other_queues() {
    let (customer, all) = (Crew::new("customer", ms(1000), 1).await, Crew::new("all", ms(10), 4).await);
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
    let (customer, all) = (Crew::new("customer", ms(100), 1).await, Crew::new("all", ms(10), 4).await);
    keep_busy(&all, &[1, 2], 400).await;
    let limits = limits(&[&customer, &all], 0);
    let began = Instant::now();
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
async fn a_joint_job_costs_few_commands_more_than_a_single_one() {
    let wires = [Faulty::new(MemoryState::new()), Faulty::new(MemoryState::new())];
    let queues = [open("a", &wires[0], ms(100)).await, open("b", &wires[1], ms(10)).await];
    let limits = Limits::new(queues.clone()).unwrap();
    let mut last = wires.clone().map(|wire| wire.counts());
    let mut cost = |what: &str| {
        let counts = wires.clone().map(|wire| wire.counts());
        let total = [0, 1].map(|queue| counts[queue].total() - last[queue].total());
        let reads = [0, 1].map(|queue| counts[queue].reads - last[queue].reads);
        println!("{what}: {total:?} commands, of which {reads:?} only read");
        last = counts;
        total
    };
    for _ in 0..10 {
        drop(limits.turn().await.unwrap());
        sleep(ms(5_000)).await;
    }
    let idle = cost("10 jobs on idle queues");
    assert!(idle.iter().all(|commands| *commands <= 20), "{idle:?}");
    join_all((0..100).map(|_| limits.turn())).await.into_iter().for_each(drop);
    let line = cost("100 jobs in a line");
    assert!(line[0] <= 130 && line[1] <= 300, "{line:?}");
    let busy = join_all((0..1000).map(|_| queues[1].turn().into_future()));
    let joint = join_all((0..100).map(|_| limits.turn()));
    drop(tokio::join!(busy, joint));
    let beside = cost("100 jobs beside 1000 of the faster queue alone");
    assert!(beside[0] <= 300 && beside[1] <= 1_300, "{beside:?}");
}

#[tokio::test(start_paused = true)]
async fn joint_jobs_keep_the_rate_however_long_replies_take() {
    for trip in [0, 1, 5, 20, 100] {
        let (a, b) = (Crew::at("a", ms(100), 2, ms(trip)).await, Crew::at("b", ms(20), 2, ms(trip)).await);
        let jobs = (0..100).map(|job| {
            let (limits, a, b) = (limits(&[&a, &b], job % 2), &a, &b);
            async move {
                let _turns = limits.turn().await.unwrap();
                a.starts.note(job);
                b.starts.note(job);
            }
        });
        join_all(jobs).await;
        let starts = a.starts.all();
        let took = starts[99].at - starts[0].at;
        println!(
            "round trip {trip} ms: {took:?}, least gap {:?}, lost {} and {}",
            a.least_gap(),
            a.lost(),
            b.lost()
        );
        assert!(took <= ms(9_900 * 103 / 100), "{took:?} for 99 intervals at {trip} ms");
        assert!(a.least_gap() + COARSE + ms(trip) >= ms(100), "{:?}", a.least_gap());
        assert!(a.lost() + b.lost() <= 4, "{} and {}", a.lost(), b.lost());
    }
}

#[tokio::test(start_paused = true)]
async fn jobs_of_different_weights_waste_little_of_either_queue() {
    for shards in [1_u32, 2, 4] {
        let state = MemoryState::new();
        let open = |name, interval| IntervalQueue::builder(name).interval(interval).open(state.clone());
        let starts = Starts::new();
        let (mut jobs, mut nominal) = (Vec::new(), ms(0));
        for _ in 0..shards {
            let queues = [open("requests", ms(100)).await.unwrap(), open("tokens", ms(1)).await.unwrap()];
            let both = Limits::new(queues).unwrap();
            for job in 0..32 / shards {
                let tokens = 20 + job * 97 % 381;
                nominal += ms(u64::from(tokens.max(100)));
                let limits = both.weighing([1, tokens]).unwrap();
                let job = starts.job(job as usize);
                jobs.push(tokio::spawn(async move { limits.run(job).await.unwrap() }));
            }
        }
        for job in jobs {
            job.await.unwrap();
        }
        let took = starts.all().last().unwrap().at;
        assert!(took <= nominal * 13 / 10, "{shards} shards: {took:?} instead of {nominal:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn many_customers_share_the_pace_of_all() {
    for trip in [0, 1, 5] {
        let all = Crew::at("all", ms(10), 2, ms(trip)).await;
        let names: Vec<_> = (0..30).map(|customer| format!("customer {customer}")).collect();
        let customers = join_all(names.iter().map(|name| Crew::at(name, ms(200), 2, ms(trip)))).await;
        let jobs = (0..600).map(|job| {
            let customer = &customers[job / 2 * 7 % 30];
            let (limits, all) = (limits(&[customer, &all], job % 2), &all);
            async move {
                let _turns = limits.turn().await.unwrap();
                all.starts.note(job);
                customer.starts.note(job);
            }
        });
        join_all(jobs).await;
        let starts = all.starts.all();
        let took = starts[599].at - starts[0].at;
        let lost: usize = customers.iter().map(Crew::lost).sum();
        let nearest = customers.iter().map(Crew::least_gap).min().unwrap();
        // Slots of all pass where two jobs of a customer are near to each other in the line.
        assert!(took <= ms(5_990 * 4 / 3), "{took:?}");
        assert!(all.lost() + lost <= 30, "{} and {lost}", all.lost());
        assert!(nearest + COARSE + ms(trip) * 2 >= ms(200), "{nearest:?}");
        println!(
            "round trip {trip}: 600 joint jobs of 30 customers in {took:?} of 5.99 s, lost {} of all, {lost} of theirs, nearest {:?} and {nearest:?}",
            all.lost(),
            all.least_gap()
        );
    }
}

#[tokio::test(start_paused = true)]
async fn while_a_ticket_is_held_the_shard_only_renews_its_lease() {
    let state = MemoryState::new();
    let wires = [Faulty::new(MemoryState::new()), Faulty::new(state.clone())];
    let (busy, held) = (open("all", &state, ms(100)).await, open("all", &wires[1], ms(100)).await);
    for _ in 0..300 {
        busy.add(async {}).await.unwrap();
    }
    sleep(ms(100)).await;
    let limits = Limits::new([open("customer", &wires[0], ms(1_000)).await, held]).unwrap();
    let before = wires.clone().map(|wire| wire.counts().total());
    let began = Instant::now();
    drop(limits.turn().await.unwrap());
    let took = began.elapsed();
    let sent = [0, 1].map(|wire| wires[wire].counts().total() - before[wire]);
    println!("{sent:?} commands in {took:?}");
    assert!(took >= ms(29_500) && took <= ms(30_500), "{took:?}");
    // Half a lease is 2.5 s, and a line is looked at again in half of what is left.
    assert!(sent[0] <= 10 && sent[1] <= 20, "{sent:?}");
}
