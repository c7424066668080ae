//! G9 and G10: the SQLite database is deleted, rewound and damaged while shards run, and held by somebody
//! else.

use std::{fs, io::Write, path::PathBuf, thread, time::Duration};

use rand::RngExt;
use rusqlite::{Connection, OpenFlags};

use crate::{
    process::{Chaos, Scene, micros, ms, now, on_sqlite, times, wait_until},
    server::{HEALS, LOSES, assert_made_good, assert_nothing_forgotten},
};

on_sqlite!(
    database_deleted,
    an_old_record_put_back,
    tables_dropped,
    database_damaged,
    database_held_by_another
);

/// What takes the tables away.
pub(crate) const DROP: &str =
    "BEGIN IMMEDIATE; DROP TABLE interval_queue; DROP TABLE interval_queue_schema; COMMIT";

/// Opens the database that is there, as a patient person does.
pub(crate) fn open(scene: &Scene) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags(scene.place.path(), OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    connection.busy_timeout(Duration::from_secs(30))?;
    Ok(connection)
}

/// The database and what lies beside it.
pub(crate) fn files(scene: &Scene) -> [PathBuf; 3] {
    ["state.db", "state.db-wal", "state.db-shm"].map(|name| scene.place.path().with_file_name(name))
}

fn database_deleted(scene: &mut Scene) {
    let outcome = Chaos::usual(scene, times(12, 120)).harmed(scene, ms(80), |chaos, scene| {
        let all = chaos.random.random_bool(0.5);
        // It may be that nobody has made it again since the last time.
        for file in &files(scene)[..if all { 3 } else { 1 }] {
            drop(fs::remove_file(file));
        }
    });
    outcome.tell(scene, "the database deleted, with what lies beside it or without", LOSES);
    assert_made_good(scene, &outcome);
    scene.place.assert_no_litter(false);
}

fn an_old_record_put_back(scene: &mut Scene) {
    let mut chaos = Chaos::usual(scene, times(8, 80));
    while chaos.is_to_go_on() {
        let look = "SELECT record FROM interval_queue";
        let old: String = open(scene).unwrap().query_row(look, [], |row| row.get(0)).unwrap();
        let age = chaos.length(ms(0), ms(500));
        thread::sleep(age);
        chaos.harm(scene, |_, scene| {
            open(scene).unwrap().execute("UPDATE interval_queue SET record = ?1", [&old]).unwrap();
        });
    }
    let outcome = chaos.end(scene);
    outcome.tell(scene, "an old record put back, up to 0.6 s old", LOSES);
    assert_made_good(scene, &outcome);
}

fn tables_dropped(scene: &mut Scene) {
    let outcome = Chaos::usual(scene, times(8, 80)).harmed(scene, ms(80), |chaos, scene| {
        let way = chaos.random.random_range(0..2);
        let statements = if way == 0 { "DELETE FROM interval_queue" } else { DROP };
        // It may be that nobody has made them again since the last time.
        drop(open(scene).unwrap().execute_batch(statements));
    });
    outcome.tell(scene, "the row deleted, the tables dropped", LOSES);
    assert_made_good(scene, &outcome);
}

fn database_damaged(scene: &mut Scene) {
    let outcome = Chaos::usual(scene, times(4, 40)).harmed(scene, ms(100), |chaos, scene| {
        let way = chaos.random.random_range(0..3);
        let length = chaos.length(ms(0), ms(200));
        let told = scene.log.count_of_troubles("");
        wait_until("a shard tells of the damage", || {
            // Whoever has read the files before may still write some of them.
            files(scene)[..2].iter().for_each(|file| damage(file, way));
            let begun = now();
            while now() < begun + micros(ms(50)) && scene.log.count_of_troubles("") == told {
                thread::sleep(ms(1));
            }
            scene.log.count_of_troubles("") > told
        });
        thread::sleep(length);
        // A person does what the error says.
        files(scene).iter().for_each(|file| drop(fs::remove_file(file)));
    });
    let outcome = outcome.noting_refused();
    let promised = "G9: it is refused and told; once a person has moved it away work goes on by itself";
    outcome.tell(scene, "the database and its log truncated, or overwritten with garbage", promised);
    assert_made_good(scene, &outcome);
}

/// Leaves half of a file, nothing, or garbage.
fn damage(file: &PathBuf, way: u32) {
    let Ok(bytes) = fs::read(file) else { return };
    let mut open = fs::File::options().write(true).open(file).unwrap();
    match way {
        0 => open.set_len(bytes.len() as u64 / 2).unwrap(),
        1 => open.set_len(0).unwrap(),
        _ => open.write_all(&vec![0xa5; bytes.len()]).unwrap(),
    }
}

fn database_held_by_another(scene: &mut Scene) {
    scene.place.add_parameter("lock_timeout=300ms");
    let mut chaos = Chaos::usual(scene, times(4, 40));
    while chaos.goes_on(ms(150)) {
        let length = chaos.length(ms(10), ms(1_200));
        let hold = |scene: &mut Scene| {
            let other = open(scene).unwrap();
            other.execute_batch("BEGIN IMMEDIATE").unwrap();
            other
        };
        chaos.harm_for(scene, length, hold, |_, _, other| other.execute_batch("ROLLBACK").unwrap());
    }
    let outcome = chaos.end(scene);
    outcome.tell(scene, "the write lock held by another program for up to 1.2 s", &format!("G10: {HEALS}"));
    assert_nothing_forgotten(scene, &outcome);
    outcome.assert_quiet_meanwhile(scene);
}
