//! G9 and G10 on real processes and a real Redis: whatever happens to the server while jobs wait, all of them run once,
//! in no burst, and work resumes by itself.
#![cfg(all(unix, feature = "redis"))]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "common/process/mod.rs"]
mod process;

use std::thread;

use process::{Options, Scene, assert_kept_pace, finish, micros, ms, now, on_redis};

on_redis!(
    a_server_killed_and_restarted_empty,
    shards_that_run_alone_while_a_server_is_dead,
    everything_flushed,
    scripts_forgotten,
    a_server_frozen_for_three_seconds,
    all_connections_killed,
);

/// Two processes have jobs that wait, and a third keeps adding some, when their server gets into trouble.
fn goes_on_after(scene: &mut Scene, trouble: impl FnOnce(&mut Scene)) {
    let interval = ms(20);
    let mut workers = scene.workers::<3>(Options::every(interval).lease(ms(1_000)));
    workers[0].begin_to_add(60);
    workers[1].begin_to_add(60);
    workers[2].feed(30, ms(70));
    scene.wait_for_starts(30);
    let before = scene.place.record();
    trouble(scene);
    let over = now();
    finish(workers);

    let log = &scene.log;
    log.assert_nothing_lost_or_doubled();
    log.assert_no_bursts(interval);
    let after = log.starts_since(over);
    assert!(after.len() >= 40, "there was something to lose");
    let resumed = after[0].at - over;
    assert!(resumed < micros(ms(10_000)), "resumed after {resumed} µs");
    assert_kept_pace(&after, interval);
    // Neither number goes back.
    let record = scene.place.record();
    assert!(record.ticket > before.ticket && record.current > before.current, "{record:?} after {before:?}");
    let highest = log.tickets().into_values().max().unwrap();
    assert_eq!((record.ticket.get(), record.current.get()), (highest, highest));
    assert!(record.shards.is_empty());
}

/// How many slots may come early when the record is lost: a shard whose lead has just grown may be the only one to know.
const EARLY: usize = 1;

/// What holds if the server forgot nothing.
fn assert_nothing_forgotten(scene: &Scene) {
    scene.log.assert_paced(ms(20), 0);
    scene.log.assert_tickets_unique();
}

fn a_server_killed_and_restarted_empty(scene: &mut Scene) {
    goes_on_after(scene, |scene| {
        scene.place.server().kill();
        thread::sleep(ms(300));
        scene.place.server().start_again();
    });
    scene.log.assert_paced(ms(20), EARLY);
    assert!(!scene.log.troubles().is_empty(), "an outage is told");
}

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
    assert!((60..=120 + SHARDS).contains(&alone), "{alone} starts alone in 120 intervals");
    // Not more than fit in any second, whoever came back when. A machine that stalls makes some starts late.
    let starts = log.starts();
    let fit = 20 + 2 * SHARDS + 2;
    let dense = starts.windows(fit + 1).filter(|window| window[fit].at - window[0].at < 1_000_000).count();
    assert!(dense * 50 <= starts.len(), "{dense} of {} windows are too full", starts.len());
    assert!(scene.place.record().shards.is_empty());
}

fn everything_flushed(scene: &mut Scene) {
    goes_on_after(scene, |scene| drop(scene.place.server().command(&["FLUSHALL"])));
    scene.log.assert_paced(ms(20), EARLY);
}

fn scripts_forgotten(scene: &mut Scene) {
    goes_on_after(scene, |scene| drop(scene.place.server().command(&["SCRIPT", "FLUSH"])));
    assert_nothing_forgotten(scene);
    scene.log.assert_in_order();
    assert!(scene.log.troubles().is_empty(), "{:?}", scene.log.troubles());
}

fn a_server_frozen_for_three_seconds(scene: &mut Scene) {
    let mut frozen = 0..0;
    goes_on_after(scene, |scene| {
        scene.place.server().freeze();
        frozen.start = now();
        thread::sleep(ms(3_000));
        frozen.end = now();
        scene.place.server().thaw();
    });
    assert_nothing_forgotten(scene);
    // What was granted before may still start, and nothing else.
    let quiet = frozen.start + micros(interval_queue::MAX_LEAD.to_duration());
    let early = scene.log.starts_since(quiet).iter().filter(|start| start.at < frozen.end).count();
    assert_eq!(early, 0);
    assert!(!scene.log.troubles().is_empty(), "a server that does not answer is told of");
}

fn all_connections_killed(scene: &mut Scene) {
    goes_on_after(scene, |scene| drop(scene.place.server().command(&["CLIENT", "KILL", "TYPE", "normal"])));
    assert_nothing_forgotten(scene);
    scene.log.assert_in_order();
}
