//! G9 and G10: Redis is emptied, stops serving and is filled up while jobs wait.

use std::thread;

use crate::{
    process::{Outcome, Scene, ms, on_redis, times},
    server::{HEALS, LOSES, assert_made_good, assert_nothing_forgotten, begin},
};

on_redis!(clients_paused, everything_flushed, scripts_forgotten, connections_killed, memory_full);

fn clients_paused(scene: &mut Scene) {
    let outcome = begin(scene, times(4, 40)).harmed(scene, ms(150), |chaos, scene| {
        let length = chaos.length(ms(10), ms(1_200));
        let millis = length.as_millis().to_string();
        scene.place.command(&["CLIENT", "PAUSE", &millis]);
        thread::sleep(length);
    });
    outcome.tell(scene, "CLIENT PAUSE for up to 1.2 s", &format!("G10: {HEALS}"));
    assert_nothing_forgotten(scene, &outcome);
}

/// One command, which is over at once.
fn command(scene: &mut Scene, times: usize, words: &[&str]) -> Outcome {
    begin(scene, times).harmed(scene, ms(50), |_, scene| drop(scene.place.command(words)))
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
    scene.log.assert_untroubled();
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
        scene.place.command(&["CONFIG", "SET", "maxmemory", bytes]);
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
    let outcome = outcome.noting_refused();
    let promised = format!("G10: {HEALS}; what is added meanwhile is refused with the reason");
    outcome.tell(scene, "maxmemory reached for up to 0.6 s, writes refused with OOM", &promised);
    assert!(scene.log.troubles().iter().any(|told| told.contains("memory")), "G10: the reason is told");
    assert_nothing_forgotten(scene, &outcome);
}
