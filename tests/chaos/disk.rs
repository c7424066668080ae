//! G10: the disk of the state file fills up, and its directory becomes read-only.

use std::thread;

use interval_queue_test_support::Immutable;

use crate::process::{Chaos, Options, Outcome, Scene, counted, ms, on, times};

on! { json_file, file, ["needs root: scripts/test runs it"]; directory_read_only, disk_full }
#[cfg(feature = "sqlite")]
on! { sqlite, sqlite, ["needs root: scripts/test runs it"]; disk_full }

const PROMISED: &str = "G10: nothing starts, the application is told why, what is added meanwhile is refused, what was \
                        stored stays, and work goes on by itself";

fn begin(scene: &mut Scene, times: usize) -> Chaos {
    Chaos::begin(scene, Options::every(ms(10)).lease(ms(1_000)), times)
}

fn disk_full(scene: &mut Scene) {
    let Some(place) = scene.place.on_small_disk() else {
        eprintln!("skipped: only root may mount a disk");
        return;
    };
    scene.place = place;
    let mut chaos = begin(scene, times(4, 40));
    while chaos.goes_on(ms(150)) {
        let length = chaos.length(ms(0), ms(500));
        chaos.harm(scene, |_, scene| {
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
    }
    let outcome = chaos.end(scene);
    hold_to_promises(scene, outcome, "the disk full for up to 0.5 s");
}

fn directory_read_only(scene: &mut Scene) {
    let directory = scene.place.path().parent().unwrap().to_owned();
    if Immutable::make(&directory).is_none() {
        eprintln!("skipped: no directory can be made immutable here");
        return;
    }
    let mut chaos = begin(scene, times(4, 40));
    while chaos.goes_on(ms(150)) {
        let length = chaos.length(ms(0), ms(500));
        chaos.harm(scene, |_, scene| {
            let told = scene.log.count_of_troubles("cannot");
            let immutable = Immutable::make(&directory).unwrap();
            while scene.log.count_of_troubles("cannot") == told {
                thread::sleep(ms(1));
            }
            thread::sleep(length);
            drop(immutable);
        });
    }
    let outcome = chaos.end(scene);
    hold_to_promises(scene, outcome, "the directory read-only for up to 0.5 s");
}

fn hold_to_promises(scene: &Scene, outcome: Outcome, fault: &str) {
    let refused = outcome.refused();
    let outcome =
        outcome.note(format!("{} adds were refused meanwhile, and never started", counted(refused)));
    outcome.tell(scene, fault, PROMISED);
    outcome.assert_sound(scene, 0);
    outcome.assert_tickets_unique();
    outcome.assert_recovery_within(scene, ms(10_000));
    scene.place.assert_no_litter(false);
}
