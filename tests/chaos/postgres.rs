//! G4, G9 and G10: PostgreSQL loses sessions, processes, rows and tables, turns impatient or read-only, is
//! replaced by its standby, and has a client that stops while it holds the row of the queue.

use std::thread;

use rand::RngExt;
use rustix::process::{Pid, Signal, kill_process};

use crate::{
    process::{Chaos, Injection, Outcome, Scene, micros, ms, now, on, on_postgres, times, wait_until},
    server::{HEALS, LOSES, assert_made_good, assert_nothing_forgotten, begin},
};

on_postgres!(
    sessions_terminated,
    a_process_of_the_server_killed,
    rows_and_tables_deleted,
    an_old_record_put_back,
    impatient_server,
    read_only_for_a_while,
);
on! { relaxed, relaxed_postgres, ["needs postgresql: scripts/test runs it"]; a_process_of_the_server_killed_relaxed }
on! { far_away, postgres_far_away, ["needs postgresql: scripts/test runs it"]; shards_stopped_with_the_row_in_their_hands }
on! { failover, postgres_with_standby, ["needs postgresql: scripts/test runs it"]; a_standby_promoted }

const TABLE: &str = "interval_queue.interval_queue";
/// The sessions of the shards.
const SESSIONS: &str = "FROM pg_stat_activity WHERE application_name = 'interval-queue'";

fn sessions_terminated(scene: &mut Scene) {
    let outcome = begin(scene, times(15, 120)).harmed(scene, ms(50), |chaos, scene| {
        let all = chaos.random.random_bool(0.5);
        let which = if all { "" } else { "ORDER BY random() LIMIT 1" };
        scene
            .place
            .psql(&format!("SELECT pg_terminate_backend(pid) FROM (SELECT pid {SESSIONS} {which}) AS one"));
    });
    let promised = "G5, G10: a lost reply costs a slot, never a second start; work goes on by itself";
    outcome.tell(scene, "pg_terminate_backend of one session or all", promised);
    assert_nothing_forgotten(scene, &outcome);
}

/// As the kernel does when memory is short. The server then ends all its processes and recovers.
fn kill_processes(scene: &mut Scene) -> Outcome {
    begin(scene, times(3, 30)).harmed(scene, ms(300), |_, scene| {
        // After the last recovery the shards may not be back yet.
        let victim = loop {
            let found = scene.place.psql(&format!("SELECT pid {SESSIONS} ORDER BY random() LIMIT 1"));
            if let Some(found) = found.first() {
                break found.parse().unwrap();
            }
        };
        kill_process(Pid::from_raw(victim).unwrap(), Signal::KILL).unwrap();
    })
}

fn a_process_of_the_server_killed(scene: &mut Scene) {
    let outcome = kill_processes(scene);
    outcome.tell(scene, "kill -9 of a process of the server, which then recovers", &format!("G10: {HEALS}"));
    assert_nothing_forgotten(scene, &outcome);
}

fn a_process_of_the_server_killed_relaxed(scene: &mut Scene) {
    let outcome = kill_processes(scene);
    outcome.tell(
        scene,
        "kill -9 of a process of the server with durability=relaxed, which then recovers",
        LOSES,
    );
    assert_made_good(scene, &outcome);
}

fn rows_and_tables_deleted(scene: &mut Scene) {
    let outcome = begin(scene, times(12, 120)).harmed(scene, ms(80), |chaos, scene| {
        let way = chaos.random.random_range(0..3);
        // It may be that nobody has made them again since the last time.
        drop(scene.place.postgres_servers()[0].try_psql(&match way {
            0 => format!("DELETE FROM {TABLE}"),
            1 => format!("TRUNCATE {TABLE}"),
            _ => "DROP SCHEMA interval_queue CASCADE".to_owned(),
        }));
    });
    outcome.tell(scene, "the row deleted, the table truncated, the schema dropped", LOSES);
    assert_made_good(scene, &outcome);
}

fn an_old_record_put_back(scene: &mut Scene) {
    let mut chaos = begin(scene, times(8, 80));
    while chaos.is_to_go_on() {
        let old = scene.place.psql(&format!("SELECT record FROM {TABLE}")).join("\n");
        let age = chaos.length(ms(0), ms(400));
        thread::sleep(age);
        chaos.harm(scene, |_, scene| {
            scene.place.psql(&format!("UPDATE {TABLE} SET record = '{old}'"));
        });
    }
    let outcome = chaos.end(scene);
    outcome.tell(scene, "an old record put back, up to 0.5 s old", LOSES);
    assert_made_good(scene, &outcome);
}

/// Changes settings of the server, one a call: statements to begin with, and settings to add or take away.
fn configure(scene: &mut Scene, settings: &[(&str, Option<&str>)]) {
    for (name, value) in settings {
        let value = value.map_or_else(|| format!("RESET {name}"), |value| format!("SET {name} = '{value}'"));
        scene.place.psql(&format!("ALTER SYSTEM {value}"));
    }
    scene.place.psql("SELECT pg_reload_conf()");
}

fn impatient_server(scene: &mut Scene) {
    const IMPATIENT: [(&str, &str); 3] = [
        ("idle_in_transaction_session_timeout", "1ms"),
        ("lock_timeout", "1ms"),
        ("deadlock_timeout", "1ms"),
    ];
    let outcome = begin(scene, times(4, 40)).harmed(scene, ms(100), |chaos, scene| {
        let length = chaos.length(ms(0), ms(500));
        configure(scene, &IMPATIENT.map(|(name, value)| (name, Some(value))));
        thread::sleep(length);
        configure(scene, &IMPATIENT.map(|(name, _)| (name, None)));
    });
    let promised = "G6: a command says itself how long it waits, and nobody notices";
    outcome.tell(scene, "tiny time-outs in the settings of the server", promised);
    assert_nothing_forgotten(scene, &outcome);
    let troubles = scene.log.troubles();
    // A host that stalls for as long as a command may wait for the row, half the time-out, brings some of its
    // own.
    let is_host = scene.log.explained(0, u64::MAX / 2) >= 250_000;
    assert!(troubles.is_empty() || is_host, "G10: nothing to tell of: {troubles:?}");
}

/// As providers do when a disk is nearly full.
fn read_only_for_a_while(scene: &mut Scene) {
    let outcome = begin(scene, times(3, 30)).harmed(scene, ms(150), |chaos, scene| {
        let length = chaos.length(ms(10), ms(600));
        configure(scene, &[("default_transaction_read_only", Some("on"))]);
        thread::sleep(length);
        configure(scene, &[("default_transaction_read_only", None)]);
    });
    let outcome = outcome.noting_refused();
    outcome.tell(scene, "the server read-only for up to 0.6 s", &format!("G10: {HEALS}"));
    assert!(!scene.log.troubles().is_empty(), "G10: the reason is told");
    assert_nothing_forgotten(scene, &outcome);
}

fn shards_stopped_with_the_row_in_their_hands(scene: &mut Scene) {
    let mut chaos = Chaos::usual(scene, times(2, 20));
    // The row is held for one round trip.
    scene.place.proxy().delay(ms(5), ms(5));
    while chaos.goes_on(ms(200)) {
        let victim = chaos.somebody();
        wait_until("a shard is stopped with the row in its hands", || {
            chaos.workers[victim].freeze();
            let is_locked = scene.place.is_locked();
            if !is_locked {
                chaos.workers[victim].thaw();
                thread::sleep(ms(3));
            }
            is_locked
        });
        let begun = now();
        // The server takes the row back after half the time-out of two seconds.
        let started = scene.log.count_of_starts();
        scene.wait_for_starts(started + 30);
        let waited = now() - begun;
        assert!(waited < micros(ms(1_000 + 5_000)), "G4: the others waited {waited} µs");
        chaos.workers[victim].thaw();
        let number = chaos.workers[victim].number;
        chaos.note(scene, Injection::since(begun, Some(number)));
    }
    scene.place.proxy().delay(ms(0), ms(0));
    let outcome = chaos.end(scene);
    let promised = "G4: the server takes the row back after a second, and the others go on; the one that was stopped \
                    loses its slots and no job";
    outcome.tell(scene, "SIGSTOP of a shard that holds the row of the queue, then SIGCONT", promised);
    outcome.assert_sound(scene, 0);
    outcome.assert_tickets_unique();
    outcome.assert_no_pause_beyond(scene, ms(1_000) + ms(1_000));
}

fn a_standby_promoted(scene: &mut Scene) {
    let mut chaos = begin(scene, times(2, 10));
    while chaos.goes_on(ms(300)) {
        chaos.harm(scene, |_, scene| {
            let [primary, standby] = scene.place.postgres_servers() else { panic!("two servers") };
            primary.kill();
            standby.promote();
        });
        let [old, new] = scene.place.postgres_servers() else { panic!("two servers") };
        old.follow(new);
        scene.place.postgres_servers().swap(0, 1);
    }
    let outcome = chaos.end(scene);
    let promised =
        "G9: a failover that loses the last writes costs at most one early start, never a job or a burst";
    outcome.tell(scene, "kill -9 of the primary, its standby promoted, a new standby in its place", promised);
    assert!(!scene.log.troubles().is_empty(), "G10: the outage is told");
    assert_made_good(scene, &outcome);
}
