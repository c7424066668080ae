//! G4: shards are killed with `kill -9` at random instants, and others take their places.

use crate::process::{Chaos, Injection, Options, Scene, everywhere, ms, now, times};

everywhere!(shards_killed);

fn shards_killed(scene: &mut Scene) {
    let lease = ms(300);
    let mut chaos = Chaos::begin(scene, Options::every(ms(10)).lease(lease), times(20, 210));
    while chaos.goes_on(ms(400)) {
        let victim = chaos.somebody_but_the_first();
        let killed = now();
        chaos.workers[victim].kill();
        let number = chaos.workers[victim].number;
        // Whatever it was doing, the record is whole.
        assert_eq!(scene.place.record().interval().to_duration(), ms(10), "G4: the record survives");
        scene.place.assert_no_litter(true);
        chaos.replace(scene, victim);
        chaos.note(scene, Injection { over: killed, ..Injection::since(killed, Some(number)) });
    }
    let outcome = chaos.end(scene);
    let promised = "G4: what a dead shard held costs at most slots until its lease of 300 ms ends; the living lose no job";
    outcome.tell(scene, "kill -9 of a shard at a random instant", promised);
    outcome.assert_sound(scene, 0);
    outcome.assert_tickets_unique();
    outcome.assert_no_pause_beyond(scene, lease);
    scene.place.assert_no_litter(false);
}
