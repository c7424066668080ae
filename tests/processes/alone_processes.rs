//! Shards that run alone when their state is lost, on real processes and a real server.

use std::thread;

use crate::process::{Options, Scene, finish, micros, ms, now, on_postgres, on_redis};

on_redis!(shards_that_run_alone_while_a_server_is_dead);
on_postgres!(shards_that_run_alone_while_a_server_is_dead);

fn shards_that_run_alone_while_a_server_is_dead(scene: &mut Scene) {
    const SHARDS: usize = 3;
    let interval = ms(50);
    let mut workers = scene.workers::<SHARDS>(Options::every(interval).alone(ms(1_000), 3));
    workers.iter_mut().for_each(|worker| worker.begin_to_add(150));
    scene.wait_for_starts(20);
    scene.place.server().kill();
    let dead = now();
    // Some that have no ticket when the server is gone.
    workers.iter_mut().for_each(|worker| worker.begin_to_add(10));
    thread::sleep(ms(8_000));
    let back = now();
    scene.place.server().start_again();
    finish(workers);

    let log = &scene.log;
    log.assert_nothing_lost_or_doubled();
    assert!(!log.troubles().is_empty(), "an outage is told");
    // After a second, and a while for each to notice and to find its turn.
    let alone = log.starts_since(dead + micros(ms(2_000))).iter().filter(|start| start.at < back).count();
    assert!(alone <= 120 + SHARDS, "{alone} starts alone in 120 intervals");
    let alone: Vec<_> = log.starts_since(dead).into_iter().filter(|start| start.ticket == 0).collect();
    for worker in 0..SHARDS {
        let own: Vec<_> = alone.iter().filter(|start| start.worker == worker).map(|start| start.at).collect();
        log.assert_kept_pace(own, interval * SHARDS as u32);
    }
    // Not more than fit in any second, whoever came back when, but for what the host made late.
    let starts = log.starts();
    let fit = 20 + 2 * SHARDS + 2;
    let full = starts.windows(fit + 1).map(|window| (window[0].at, window[fit].at));
    let dense: Vec<_> = full.filter(|(from, to)| to - from + log.explained(*from, *to) < 1_000_000).collect();
    assert!(dense.is_empty(), "of {} windows these are too full: {dense:?}", starts.len());
    assert!(scene.place.record().shards.is_empty());
}
