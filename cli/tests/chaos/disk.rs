//! T1: the disk of the store fills up.

use std::thread;

use crate::{
    harm::Harm,
    outcome::Outcome,
    process::{Scene, ms, times},
    scenes::on,
    sqlite::open,
};

on! { sqlite, sqlite, ["needs root: scripts/test runs it"]; disk_full }

fn disk_full(scene: &mut Scene) {
    let Some(place) = scene.place.on_small_disk() else {
        eprintln!("skipped: only root may mount a disk");
        return;
    };
    scene.place = place;
    let mut harm = Harm::usual(scene, times(4, 40));
    while harm.goes_on(ms(300)) {
        let length = harm.length(ms(0), ms(2_000));
        harm.harm(scene, |harm, scene| {
            // A worker that waits before it tries again has told of a failure, and tells of no other.
            let workers = harm.tellers();
            harm.wait_until("a worker can tell of it", |log| !log.unanswered.is_superset(&workers));
            // A log that has grown has room for itself.
            let empty = "PRAGMA wal_checkpoint(TRUNCATE)";
            open(scene).unwrap().query_row(empty, [], |_| Ok(())).unwrap();
            let told = harm.log.troubles("no room");
            let disk = scene.place.disk();
            harm.wait_until_or("a process tells of it", |log| log.troubles("no room") > told, || disk.fill());
            thread::sleep(length);
            disk.free();
        });
    }
    let outcome = harm.end(scene);
    let promised = "T1 to T3: what is added meanwhile is refused and told, what was stored stays, and work goes on by itself";
    outcome.tell(scene, "the disk full for up to 2 s", promised);
    outcome.assert_sound(scene, ms(10_000) + Outcome::a_lease());
}
