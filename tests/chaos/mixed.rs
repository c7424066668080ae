//! Several faults at once, and of n shards n − 1 killed.

use std::{fs, thread};

use rand::RngExt;

use crate::process::{Chaos, Options, Scene, counted, ms, on, on_file, on_sqlite, times};
#[cfg(feature = "sqlite")]
use crate::sqlite as database;

/// What PostgreSQL is told.
const DELETE: &str = "DELETE FROM interval_queue.interval_queue";
const TERMINATE: &str =
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'interval-queue'";

/// What SQLite is told.
#[cfg(feature = "sqlite")]
const LOOK: &str = "SELECT record FROM interval_queue";
#[cfg(feature = "sqlite")]
const PUT_BACK: &str = "UPDATE interval_queue SET record = ?1 WHERE ?1 <> ''";

/// Further apart than the tickets of all shards that wait.
const FAR: u64 = 100;

on_file!(several_faults_at_once);
on_sqlite!(several_faults_at_once_in_a_database);
on! { redis, redis_far_away, ["needs redis-server: scripts/test runs it"]; several_faults_at_once_far_away }
on! { postgres, postgres_far_away, ["needs postgresql: scripts/test runs it"]; several_faults_at_once_far_away }

fn several_faults_at_once(scene: &mut Scene) {
    let copies = tempfile::tempdir_in(scene.place.path().parent().unwrap().parent().unwrap()).unwrap();
    let old = copies.path().join("old");
    all_at_once(
        scene,
        6,
        "kills, stops, a deleted, rewound or truncated file, a deleted lock",
        |scene, fault| {
            let path = scene.place.path();
            // Whatever another fault has left there.
            match fault {
                0 => drop(fs::remove_file(&path)),
                1 => drop(fs::remove_file(path.with_extension("json.lock"))),
                2 => drop(fs::copy(&path, &old)),
                3 => drop(fs::rename(&old, &path)),
                4 => {
                    drop(fs::write(&path, ""));
                    thread::sleep(ms(20));
                    // It may be that nobody looked.
                    drop(fs::remove_file(&path));
                }
                _ => thread::sleep(ms(30)),
            }
        },
    );
    scene.place.assert_no_litter(false);
}

#[cfg(feature = "sqlite")]
fn several_faults_at_once_in_a_database(scene: &mut Scene) {
    let old = std::cell::RefCell::new(String::new());
    all_at_once(scene, 5, "kills, stops, a deleted or rewound database, dropped tables", |scene, fault| {
        let files = database::files(scene);
        // Whatever another fault has left there.
        match fault {
            // Its log alone is nothing to delete: what SQLite has in both would be torn.
            0 => drop(fs::remove_file(&files[0])),
            1 => drop(files.map(fs::remove_file)),
            fault => drop(database::open(scene).and_then(|open| {
                // Who is stopped may hold the lock.
                open.busy_timeout(ms(200))?;
                match fault {
                    2 => open.query_row(LOOK, [], |row| row.get(0).map(|found| *old.borrow_mut() = found)),
                    3 => open.execute(PUT_BACK, [&*old.borrow()]).map(drop),
                    _ => open.execute_batch(database::DROP),
                }
            })),
        }
    });
    scene.place.assert_no_litter(false);
}

fn several_faults_at_once_far_away(scene: &mut Scene) {
    scene.place.add_parameter("timeout=400ms");
    all_at_once(
        scene,
        6,
        "kills, stops, a server killed or emptied, a network cut, silent or losing replies",
        |scene, fault| match fault {
            0 if scene.place.kind() == "PostgreSQL" => drop(scene.place.psql(DELETE)),
            1 if scene.place.kind() == "PostgreSQL" => drop(scene.place.psql(TERMINATE)),
            0 => drop(scene.place.command(&["FLUSHALL"])),
            1 => drop(scene.place.command(&["SCRIPT", "FLUSH"])),
            2 => scene.place.server().restart(),
            3 => scene.place.proxy().cut(),
            4 => scene.place.proxy().lose_replies(3),
            _ => {
                scene.place.proxy().fall_silent();
                thread::sleep(ms(200));
                scene.place.proxy().speak();
            }
        },
    );
}

/// Two of the faults, of which there are so many, and in between shards are killed or stopped.
fn all_at_once(scene: &mut Scene, faults: u32, names: &str, harm: impl Fn(&mut Scene, u32)) {
    let mut chaos = Chaos::begin(scene, Options::every(ms(10)).lease(ms(300)), times(10, 60));
    // Then those who begin anew are far from them.
    scene.wait_for_starts(FAR as usize + 50);
    let mut killed = 0;
    while chaos.goes_on(ms(200)) {
        let [first, second] = [(); 2].map(|()| chaos.random.random_range(0..faults));
        let deaths = [0, 1, 1, 3][chaos.random.random_range(0..4)];
        killed += deaths;
        chaos.harm(scene, |chaos, scene| {
            harm(scene, first);
            let stopped = chaos.somebody();
            chaos.workers[stopped].freeze();
            for victim in 1..=deaths {
                chaos.workers[victim].kill();
            }
            harm(scene, second);
            for victim in 1..=deaths {
                chaos.replace(scene, victim);
            }
            if !(1..=deaths).contains(&stopped) {
                chaos.workers[stopped].thaw();
            }
        });
    }
    let outcome = chaos.end(scene);
    let strangers = early_by_strangers(scene);
    let outcome = outcome.note(format!("{} shards killed", counted(killed)));
    let outcome = outcome.note(format!(
        "{} of these slots by shards that opened the queue after a loss, before any that remembered it had spoken",
        counted(strangers)
    ));
    let promised = "G1 to G10 together: no job of the living is lost, none starts twice or without a grant, and each loss of \
                    the record costs at most one early start of those who remember it";
    outcome.tell(scene, &format!("two faults at once, of: {names}"), promised);
    outcome.assert_sound(scene, outcome.injections.len() + strangers);
    outcome.assert_recovery_within(scene, ms(10_000));
}

/// How many slots came early because a shard that knew of nothing began the record anew, which is not
/// promised against: its tickets begin again at one.
fn early_by_strangers(scene: &Scene) -> usize {
    let close = scene.log.too_close(ms(10));
    close.iter().filter(|[first, second]| first.ticket.abs_diff(second.ticket) > FAR).count()
}
