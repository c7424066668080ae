//! Wake-ups on real processes: all go on when one resumes the queue, also after the way to hear of it was
//! lost meanwhile.
#![allow(unused_imports, reason = "each feature brings its own")]

use std::thread;

use interval_queue::MAX_LEAD;

use crate::process::{
    Options, Scene, Worker, keep, ms, on_file, on_postgres, on_redis, stop_and_finish, wait_until,
};

#[cfg(feature = "json-file-watch")]
on_file!(all_go_on_when_one_resumes);
#[cfg(feature = "redis")]
on_redis!(
    all_go_on_when_one_resumes,
    all_go_on_although_their_connections_were_killed,
    all_go_on_although_the_server_was_restarted,
);
#[cfg(feature = "postgres")]
on_postgres!(
    all_go_on_when_one_resumes,
    all_go_on_although_their_connections_were_killed,
    all_go_on_although_the_server_was_restarted,
);

/// The connections to PostgreSQL on which somebody listens.
#[cfg(any(feature = "redis", feature = "postgres"))]
const LISTENERS: &str = "FROM pg_stat_activity WHERE query LIKE 'LISTEN%'";

/// Workers that idle in a pause, with jobs waiting.
fn paused(scene: &mut Scene) -> [Worker; 3] {
    let mut workers = scene.workers::<3>(Options::every(ms(20)).lease(ms(500)).wake_ups());
    keep(&mut workers, 10);
    scene.wait_for_starts(20);
    workers[0].pause();
    // And longer than the lease: the record has forgotten who waits.
    thread::sleep(MAX_LEAD.to_duration());
    workers
}

fn check(scene: &Scene) {
    scene.log.assert_nothing_lost_or_doubled();
    scene.log.assert_tickets_unique();
    scene.log.assert_paced(ms(20), 0);
}

fn all_go_on_when_one_resumes(scene: &mut Scene) {
    let mut workers = paused(scene);
    for worker in &mut workers {
        let started = scene.log.count_of_starts();
        worker.resume();
        scene.wait_for_starts(started + 10);
        worker.pause();
        thread::sleep(MAX_LEAD.to_duration());
    }
    workers[2].resume();
    // Nobody is ticked: whoever was not woken never finishes.
    stop_and_finish(workers);
    check(scene);
}

#[cfg(any(feature = "redis", feature = "postgres"))]
fn all_go_on_although_their_connections_were_killed(scene: &mut Scene) {
    let mut workers = paused(scene);
    wait_until("all of them watch", || watching(scene) == 3);
    match scene.place.kind() {
        "Redis" => scene.place.command(&["CLIENT", "KILL", "TYPE", "pubsub"]),
        _ => scene.place.psql(&format!("SELECT pg_terminate_backend(pid) {LISTENERS}")),
    };
    workers[1].resume();
    stop_and_finish(workers);
    wait_until("nobody watches", || watching(scene) == 0);
    check(scene);
}

#[cfg(any(feature = "redis", feature = "postgres"))]
fn all_go_on_although_the_server_was_restarted(scene: &mut Scene) {
    let mut workers = paused(scene);
    wait_until("all of them watch", || watching(scene) == 3);
    scene.place.server().kill();
    thread::sleep(ms(500));
    scene.place.server().start_again();
    // Redis has forgotten all; the shards have not.
    wait_until("all of them watch", || watching(scene) == 3);
    workers[1].resume();
    stop_and_finish(workers);
    scene.log.assert_nothing_lost_or_doubled();
}

#[cfg(any(feature = "redis", feature = "postgres"))]
fn watching(scene: &mut Scene) -> usize {
    if scene.place.kind() == "Redis" {
        let clients = scene.place.command(&["CLIENT", "LIST", "TYPE", "pubsub"]).join("\n");
        return clients.lines().filter(|line| line.contains("id=")).count();
    }
    scene.place.psql(&format!("SELECT count(*) {LISTENERS}"))[0].parse().unwrap()
}
