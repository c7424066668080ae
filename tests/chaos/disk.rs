//! G10: the disk of the state file fills up, and its directory becomes read-only.

use std::thread;

use interval_queue_test_support::Immutable;

use crate::process::{Chaos, Outcome, Scene, ms, on, times};

on! { json_file, file, ["needs root: scripts/test runs it"]; directory_read_only, disk_full }
#[cfg(feature = "sqlite")]
on! { sqlite, sqlite, ["needs root: scripts/test runs it"]; disk_full }

const PROMISED: &str = "G10: nothing starts, the application is told why, what is added meanwhile is refused, what was \
                        stored stays, and work goes on by itself";

fn disk_full(scene: &mut Scene) {
    let Some(place) = scene.place.on_small_disk() else {
        eprintln!("skipped: only root may mount a disk");
        return;
    };
    scene.place = place;
    let outcome = Chaos::usual(scene, times(4, 40)).harmed(scene, ms(150), |chaos, scene| {
        let length = chaos.length(ms(0), ms(500));
        let told = scene.log.count_of_troubles("no room");
        #[cfg(feature = "sqlite")]
        if scene.place.kind() == "SQLite" {
            // A log that has grown has room for itself.
            let empty = "PRAGMA wal_checkpoint(TRUNCATE)";
            crate::sqlite::open(scene).unwrap().query_row(empty, [], |_| Ok(())).unwrap();
        }
        while scene.log.count_of_troubles("no room") == told {
            scene.place.disk().fill();
            thread::sleep(ms(2));
        }
        thread::sleep(length);
        scene.place.disk().free();
    });
    hold_to_promises(scene, outcome, "the disk full for up to 0.5 s");
}

fn directory_read_only(scene: &mut Scene) {
    let directory = scene.place.path().parent().unwrap().to_owned();
    if Immutable::make(&directory).is_none() {
        eprintln!("skipped: no directory can be made immutable here");
        return;
    }
    let outcome = Chaos::usual(scene, times(4, 40)).harmed(scene, ms(150), |chaos, scene| {
        let length = chaos.length(ms(0), ms(500));
        let told = scene.log.count_of_troubles("cannot");
        let immutable = Immutable::make(&directory).unwrap();
        while scene.log.count_of_troubles("cannot") == told {
            thread::sleep(ms(1));
        }
        thread::sleep(length);
        drop(immutable);
    });
    hold_to_promises(scene, outcome, "the directory read-only for up to 0.5 s");
}

fn hold_to_promises(scene: &Scene, outcome: Outcome, fault: &str) {
    let outcome = outcome.noting_refused();
    outcome.tell(scene, fault, PROMISED);
    outcome.assert_sound(scene, 0);
    outcome.assert_tickets_unique();
    outcome.assert_recovery_within(scene, ms(10_000));
    scene.place.assert_no_litter(false);
}
