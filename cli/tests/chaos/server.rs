//! T1 to T3: the server that keeps the tasks is killed, frozen, or comes back empty.

use std::{thread, time::Duration};

use crate::{
    harm::Harm,
    outcome::Outcome,
    process::{Scene, ms, times},
    scenes::on,
};

on! { lasting_redis, lasting_redis, ["needs redis-server: scripts/test runs it"]; server_killed }
on! { redis, redis, ["needs redis-server: scripts/test runs it"]; server_frozen, server_empty }
on! { postgres, postgres, ["needs postgresql: scripts/test runs it"]; server_killed, server_frozen }

const HEALS: &str =
    "nothing is lost and nothing runs twice at a time; workers are told, and work goes on by itself";
/// The longest wait between two tries, and jitter.
const RETRY: Duration = Duration::from_secs(10);

fn begin(scene: &mut Scene, times: usize) -> Harm {
    scene.place.add_parameter("timeout=500ms");
    Harm::usual(scene, times)
}

/// Kills the server, and lets it stand for a moment.
fn kill_and_restart(harm: &mut Harm, scene: &mut Scene) {
    let length = harm.length(ms(0), ms(400));
    scene.place.server().kill();
    thread::sleep(length);
    scene.place.server().start_again();
}

fn end(harm: Harm, scene: &Scene, fault: &str, promised: &str) {
    let outcome = harm.end(scene);
    outcome.tell(scene, fault, promised);
    outcome.assert_sound(scene, RETRY + Outcome::a_lease());
}

fn server_killed(scene: &mut Scene) {
    let mut harm = begin(scene, times(6, 50));
    while harm.goes_on(ms(300)) {
        harm.harm(scene, kill_and_restart);
    }
    end(harm, scene, "kill -9 of the server, restarted with its data", HEALS);
}

fn server_frozen(scene: &mut Scene) {
    let mut harm = begin(scene, times(4, 30));
    while harm.goes_on(ms(300)) {
        let length = harm.length(ms(10), ms(2_500));
        harm.harm(scene, |_, scene| {
            scene.place.server().freeze();
            thread::sleep(length);
            scene.place.server().thaw();
        });
    }
    end(harm, scene, "the server stopped for up to 2.5 s, and let go on", HEALS);
}

fn server_empty(scene: &mut Scene) {
    let mut harm = begin(scene, times(6, 50));
    while harm.goes_on(ms(300)) {
        harm.forget(scene, kill_and_restart);
    }
    let promised =
        "what the store forgot is gone, and nothing else; workers are told, no token is given out twice";
    end(harm, scene, "kill -9 of the server, restarted empty", promised);
}
