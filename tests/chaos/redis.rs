//! G9 and G10: the server is killed, emptied, frozen, cut off and filled up while jobs wait.

use std::thread;

use crate::process::{Chaos, Options, Outcome, Scene, counted, ms, on, on_redis, times};

on_redis!(
    server_killed_and_restarted_empty,
    server_frozen,
    clients_paused,
    everything_flushed,
    scripts_forgotten,
    connections_killed,
    memory_full,
);
on! { lasting_redis, lasting_redis, ["needs redis-server: scripts/test runs it"]; server_killed_and_restarted_with_its_data }

const HEALS: &str = "nothing starts, the application is told, and work goes on by itself";
const LOSES: &str = "G9: a loss costs a wait of an interval and the longest lead, at most one early start, and never a \
                     job or a burst";
/// The longest wait between two tries, with jitter.
const RETRY: u64 = 10_000;

/// Shards that give up waiting for an answer after half a second.
fn begin(scene: &mut Scene, times: usize) -> Chaos {
    scene.place.url += "?timeout=500ms";
    Chaos::begin(scene, Options::every(ms(10)).lease(ms(1_000)), times)
}

/// What holds after outages in which the server forgot nothing.
fn assert_nothing_forgotten(scene: &Scene, outcome: &Outcome) {
    outcome.assert_sound(0);
    outcome.assert_tickets_unique();
    outcome.assert_punctual(0);
    outcome.assert_no_bursts(scene);
    outcome.assert_recovery_within(ms(RETRY));
}

/// What holds after losses.
fn assert_made_good(scene: &Scene, outcome: &Outcome) {
    outcome.assert_sound(outcome.injections.len());
    outcome.assert_punctual(0);
    outcome.assert_no_bursts(scene);
    outcome.assert_recovery_within(ms(RETRY));
}

fn kill_and_restart(scene: &mut Scene, times: usize) -> Outcome {
    let mut chaos = begin(scene, times);
    while chaos.goes_on(ms(150)) {
        let length = chaos.length(ms(0), ms(400));
        chaos.harm(scene, |_, scene| {
            scene.place.server().kill();
            thread::sleep(length);
            scene.place.server().start_again();
        });
    }
    let outcome = chaos.end(scene);
    let told = scene.log.troubles().len();
    assert!(told > 0, "G10: an outage is told");
    outcome.note(format!("the applications were told {} times", counted(told)))
}

fn server_killed_and_restarted_with_its_data(scene: &mut Scene) {
    let outcome = kill_and_restart(scene, times(5, 50));
    let fault = "kill -9 of the server, restarted with its data";
    outcome.tell(scene, fault, &format!("G10: {HEALS}"));
    assert_nothing_forgotten(scene, &outcome);
}

fn server_killed_and_restarted_empty(scene: &mut Scene) {
    let outcome = kill_and_restart(scene, times(5, 50));
    outcome.tell(scene, "kill -9 of the server, restarted empty", LOSES);
    assert_made_good(scene, &outcome);
}

fn server_frozen(scene: &mut Scene) {
    let mut chaos = begin(scene, times(3, 30));
    while chaos.goes_on(ms(150)) {
        let length = chaos.length(ms(10), ms(1_800));
        chaos.harm(scene, |_, scene| {
            scene.place.server().freeze();
            thread::sleep(length);
            scene.place.server().thaw();
        });
    }
    let outcome = chaos.end(scene);
    outcome.tell(scene, "the server stopped for up to 1.8 s, then let go on", &format!("G10: {HEALS}"));
    assert_nothing_forgotten(scene, &outcome);
    outcome.assert_quiet_meanwhile();
}

fn clients_paused(scene: &mut Scene) {
    let mut chaos = begin(scene, times(4, 40));
    while chaos.goes_on(ms(150)) {
        let length = chaos.length(ms(10), ms(1_200));
        chaos.harm(scene, |_, scene| {
            let millis = length.as_millis().to_string();
            scene.place.server().command(&["CLIENT", "PAUSE", &millis]);
            thread::sleep(length);
        });
    }
    let outcome = chaos.end(scene);
    outcome.tell(scene, "CLIENT PAUSE for up to 1.2 s", &format!("G10: {HEALS}"));
    assert_nothing_forgotten(scene, &outcome);
}

/// One command, which is over at once.
fn command(scene: &mut Scene, times: usize, words: &[&str]) -> Outcome {
    let mut chaos = begin(scene, times);
    while chaos.goes_on(ms(50)) {
        chaos.harm(scene, |_, scene| drop(scene.place.server().command(words)));
    }
    chaos.end(scene)
}

fn everything_flushed(scene: &mut Scene) {
    let outcome = command(scene, times(15, 120), &["FLUSHALL"]);
    outcome.tell(scene, "FLUSHALL", LOSES);
    assert_made_good(scene, &outcome);
}

fn scripts_forgotten(scene: &mut Scene) {
    let outcome = command(scene, times(15, 120), &["SCRIPT", "FLUSH"]);
    outcome.tell(scene, "SCRIPT FLUSH", "G6, G10: the scripts are sent again, and nobody notices");
    assert_nothing_forgotten(scene, &outcome);
    assert!(scene.log.troubles().is_empty(), "G10: nothing to tell of: {:?}", scene.log.troubles());
}

fn connections_killed(scene: &mut Scene) {
    let outcome = command(scene, times(15, 120), &["CLIENT", "KILL", "TYPE", "normal"]);
    let promised = "G5, G10: a lost reply costs a slot, never a second start; work goes on by itself";
    outcome.tell(scene, "CLIENT KILL of all connections", promised);
    assert_nothing_forgotten(scene, &outcome);
}

fn memory_full(scene: &mut Scene) {
    let mut chaos = begin(scene, times(4, 40));
    let limit = |scene: &mut Scene, bytes| {
        scene.place.server().command(&["CONFIG", "SET", "maxmemory", bytes]);
    };
    while chaos.goes_on(ms(150)) {
        let length = chaos.length(ms(10), ms(600));
        chaos.harm(scene, |_, scene| {
            limit(scene, "1");
            thread::sleep(length);
            limit(scene, "0");
        });
    }
    let outcome = chaos.end(scene);
    let refused = outcome.refused();
    let outcome =
        outcome.note(format!("{} adds were refused meanwhile, and never started", counted(refused)));
    let promised = format!("G10: {HEALS}; what is added meanwhile is refused with the reason");
    outcome.tell(scene, "maxmemory reached for up to 0.6 s, writes refused with OOM", &promised);
    assert!(scene.log.troubles().iter().any(|told| told.contains("memory")), "G10: the reason is told");
    assert_nothing_forgotten(scene, &outcome);
}
