//! G3 and G5: shards are stopped with SIGSTOP at random instants, for less and for longer than their leases,
//! and go on.

use std::thread;

use rand::RngExt;

use crate::process::{Chaos, Injection, Options, Scene, everywhere, ms, now, times};

everywhere!(shards_stopped);

fn shards_stopped(scene: &mut Scene) {
    let lease = ms(300);
    // The state is far away, so that a shard has several grants in hand at a time.
    let options = Options::every(ms(10)).lease(lease).away(ms(30));
    let mut chaos = Chaos::begin(scene, options, times(8, 80));
    while chaos.goes_on(ms(200)) {
        let victim = chaos.somebody();
        let is_long = chaos.random.random_bool(0.25);
        let length = if is_long { chaos.length(ms(1_600), ms(2_000)) } else { chaos.length(ms(5), ms(500)) };
        let begun = now();
        chaos.workers[victim].freeze();
        thread::sleep(length);
        chaos.workers[victim].thaw();
        let number = chaos.workers[victim].number;
        chaos.note(scene, Injection::since(begun, Some(number)));
    }
    let outcome = chaos.end(scene);
    let promised =
        "G3, G5: a shard that is stopped past its slots loses the slots and no job, and brings no burst";
    outcome.tell(scene, "SIGSTOP of a shard for up to 2 s, then SIGCONT", promised);
    outcome.assert_sound(scene, 0);
    outcome.assert_tickets_unique();
    // One that is stopped with the lock of the file in its hands keeps the others waiting until it goes on.
    outcome.assert_no_pause_beyond(scene, ms(2_000) + lease);
}
