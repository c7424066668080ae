//! G9 and G10: the server is killed and frozen while jobs wait.

use std::thread;

use crate::process::{Chaos, Outcome, Scene, counted, ms, on, on_postgres, on_redis, times};

on_redis!(server_killed_and_restarted_empty, server_frozen);
on! { lasting_redis, lasting_redis, ["needs redis-server: scripts/test runs it"]; server_killed_and_restarted_with_its_data }
on_postgres!(server_killed_and_restarted_with_its_data, server_frozen);
on! { relaxed_postgres, relaxed_postgres, ["needs postgresql: scripts/test runs it"];
    server_killed_and_restarted_without_its_last_commits,
}

pub(crate) const HEALS: &str = "nothing starts, the application is told, and work goes on by itself";
pub(crate) const LOSES: &str = "G9: a loss costs a wait of an interval and the longest lead, at most one early start, and never a \
                     job or a burst";
/// The longest wait between two tries, with jitter.
const RETRY: u64 = 10_000;

/// Shards that give up waiting for an answer after half a second.
pub(crate) fn begin(scene: &mut Scene, times: usize) -> Chaos {
    scene.place.add_parameter("timeout=500ms");
    Chaos::usual(scene, times)
}

/// What holds after outages in which the server forgot nothing.
pub(crate) fn assert_nothing_forgotten(scene: &Scene, outcome: &Outcome) {
    outcome.assert_sound(scene, 0);
    outcome.assert_tickets_unique();
    outcome.assert_recovery_within(scene, ms(RETRY));
}

/// What holds after losses.
pub(crate) fn assert_made_good(scene: &Scene, outcome: &Outcome) {
    outcome.assert_sound(scene, outcome.injections.len());
    outcome.assert_recovery_within(scene, ms(RETRY));
}

fn kill_and_restart(scene: &mut Scene, times: usize) -> Outcome {
    let outcome = begin(scene, times).harmed(scene, ms(150), |chaos, scene| {
        let length = chaos.length(ms(0), ms(400));
        scene.place.server().kill();
        thread::sleep(length);
        scene.place.server().start_again();
    });
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

fn server_killed_and_restarted_without_its_last_commits(scene: &mut Scene) {
    let outcome = kill_and_restart(scene, times(5, 50));
    outcome.tell(scene, "kill -9 of the server with durability=relaxed, restarted", LOSES);
    assert_made_good(scene, &outcome);
}

fn server_frozen(scene: &mut Scene) {
    let mut chaos = begin(scene, times(3, 30));
    while chaos.goes_on(ms(150)) {
        let length = chaos.length(ms(10), ms(1_800));
        chaos.harm_for(
            scene,
            length,
            |scene| scene.place.server().freeze(),
            |_, scene, ()| scene.place.server().thaw(),
        );
    }
    let outcome = chaos.end(scene);
    outcome.tell(scene, "the server stopped for up to 1.8 s, then let go on", &format!("G10: {HEALS}"));
    assert_nothing_forgotten(scene, &outcome);
    outcome.assert_quiet_meanwhile(scene);
}
