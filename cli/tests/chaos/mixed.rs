//! T1 to T3: several faults at once: workers killed, one stopped, the database held meanwhile, then the
//! producer killed.

use std::thread;

use rand::RngExt;

use crate::{
    chaos_facts::What,
    harm::Harm,
    outcome::Outcome,
    process::{Scene, ms, now, times},
    scenes::on,
    sqlite::open,
};

on! { sqlite, sqlite, []; several_faults_at_once }

fn several_faults_at_once(scene: &mut Scene) {
    scene.place.add_parameter("lock_timeout=300ms");
    let mut harm = Harm::usual(scene, times(4, 60));
    while harm.goes_on(ms(400)) {
        let begun = now();
        let stopped = harm.somebody();
        harm.stop(stopped, What::Frozen);
        // One that is stopped in the middle of a transaction keeps this out, too.
        let held = harm.random.random_bool(0.7).then(|| open(scene).unwrap());
        let is_held = held.as_ref().is_some_and(|held| {
            held.busy_timeout(ms(300)).unwrap();
            held.execute_batch("BEGIN IMMEDIATE").is_ok()
        });
        for place in (0..harm.workers.len()).filter(|place| *place != stopped) {
            if harm.random.random_bool(0.4) {
                harm.kill(scene, place);
            }
        }
        let length = harm.length(ms(0), ms(2_000));
        thread::sleep(length);
        if is_held {
            drop(held);
        }
        harm.stop(stopped, What::Thawed);
        if harm.random.random_bool(0.5) {
            harm.kill_producer(scene, |_| {});
        }
        harm.note(begun, None);
    }
    let outcome = harm.end(scene);
    let promised = "T1 to T3 together: nothing acknowledged is lost, nothing runs twice at a time, and work goes on by itself";
    outcome.tell(
        scene,
        "workers and the producer killed, a worker stopped, the write lock held, all at once",
        promised,
    );
    outcome.assert_sound(scene, ms(10_000) + Outcome::a_lease());
}
