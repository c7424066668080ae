//! What only SQLite can suffer: its files are deleted, rolled back, damaged and held by somebody else.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use rand::RngExt;
use rusqlite::{Connection, OpenFlags};

use crate::{
    harm::Harm,
    outcome::Outcome,
    process::{Scene, micros, ms, now, times},
    scenes::on,
};

on! { sqlite, sqlite, []; database_deleted, rolled_back, tables_dropped, database_damaged, database_held_by_another }

const LOSES: &str = "what the store forgot is gone, and nothing else; workers are told, no token is given out twice, and \
                     work goes on by itself";
/// The longest wait between two tries, and jitter.
const RETRY: Duration = Duration::from_secs(10);

/// Opens the database that is there, as a patient person does.
pub(crate) fn open(scene: &Scene) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags(scene.place.path(), OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    connection.busy_timeout(Duration::from_secs(30))?;
    Ok(connection)
}

/// The database and what lies beside it.
fn files(scene: &Scene) -> [PathBuf; 3] {
    ["state.db", "state.db-wal", "state.db-shm"].map(|name| scene.place.path().with_file_name(name))
}

fn database_deleted(scene: &mut Scene) {
    let mut harm = Harm::usual(scene, times(6, 60));
    while harm.goes_on(ms(400)) {
        let all = harm.random.random_bool(0.5);
        harm.forget(scene, |_, scene| {
            // It may be that nobody has made it again since the last time.
            for file in &files(scene)[..if all { 3 } else { 1 }] {
                drop(fs::remove_file(file));
            }
        });
    }
    let outcome = harm.end(scene);
    outcome.tell(scene, "the database deleted, with what lies beside it or without", LOSES);
    outcome.assert_sound(scene, RETRY + Outcome::a_lease());
}

fn rolled_back(scene: &mut Scene) {
    let mut harm = Harm::usual(scene, times(6, 60));
    let copies = tempfile::tempdir().unwrap();
    while harm.goes_on(ms(100)) {
        let copy = copies.path().join(now().to_string());
        let into = format!("VACUUM INTO '{}'", copy.display());
        let copied = open(scene).and_then(|open| open.execute_batch(&into));
        let age = harm.length(ms(0), ms(1_500));
        thread::sleep(age);
        let by_statements = harm.random.random_bool(0.5);
        if copied.is_ok() {
            harm.forget(scene, |_, scene| {
                if by_statements { put_rows_back(scene, &copy) } else { put_file_back(scene, &copy) }
            });
        }
    }
    let outcome = harm.end(scene);
    outcome.tell(scene, "an old copy of the database put back, up to 1.5 s old", LOSES);
    outcome.assert_sound(scene, RETRY + Outcome::a_lease());
}

/// As a person does who knows that the log belongs to the database.
fn put_file_back(scene: &Scene, copy: &Path) {
    let [database, log, index] = files(scene);
    let new = database.with_extension("new");
    fs::copy(copy, &new).unwrap();
    drop(fs::remove_file(log));
    drop(fs::remove_file(index));
    fs::rename(new, database).unwrap();
}

/// The rows alone, all at once.
fn put_rows_back(scene: &Scene, copy: &Path) {
    let open = open(scene).unwrap();
    open.execute_batch(&format!("ATTACH '{}' AS old; BEGIN IMMEDIATE", copy.display())).unwrap();
    for table in tables(&open).unwrap() {
        // Without those that are computed.
        let sql = format!("SELECT group_concat(name) FROM pragma_table_info('{table}')");
        let all: String = open.query_row(&sql, [], |row| row.get(0)).unwrap();
        let put = format!(
            "DELETE FROM main.{table}; INSERT INTO main.{table} ({all}) SELECT {all} FROM old.{table}"
        );
        open.execute_batch(&put).unwrap();
    }
    open.execute_batch("COMMIT").unwrap();
}

/// The tables of tasks.
fn tables(open: &Connection) -> rusqlite::Result<Vec<String>> {
    let sql = "SELECT name FROM main.sqlite_schema WHERE type = 'table' AND name LIKE 'interval_queue_task%'";
    open.prepare(sql)?.query_map([], |row| row.get(0))?.collect()
}

fn tables_dropped(scene: &mut Scene) {
    let mut harm = Harm::usual(scene, times(5, 50));
    while harm.goes_on(ms(400)) {
        harm.forget(scene, |_, scene| {
            // It may be that nobody has made them again since the last time.
            let dropped = open(scene).and_then(|open| {
                let drops = tables(&open)?.into_iter().map(|table| format!("DROP TABLE {table};"));
                open.execute_batch(&format!("BEGIN IMMEDIATE; {} COMMIT", drops.collect::<String>()))
            });
            drop(dropped);
        });
    }
    let outcome = harm.end(scene);
    outcome.tell(scene, "the tables of tasks dropped", LOSES);
    outcome.assert_sound(scene, RETRY + Outcome::a_lease());
}

fn database_damaged(scene: &mut Scene) {
    let mut harm = Harm::usual(scene, times(3, 30));
    while harm.goes_on(ms(300)) {
        let way = harm.random.random_range(0..3);
        let length = harm.length(ms(0), ms(300));
        harm.forget(scene, |harm, scene| {
            harm.log.refresh();
            let told = harm.log.troubles("");
            harm.wait_until_or(
                "a worker tells of the damage",
                |log| log.troubles("") > told,
                || {
                    // A process that has read the files before may still write some of them.
                    files(scene)[..2].iter().for_each(|file| damage(file, way));
                    thread::sleep(ms(50));
                },
            );
            thread::sleep(length);
            // A person does what the error says.
            files(scene).iter().for_each(|file| drop(fs::remove_file(file)));
        });
    }
    let outcome = harm.end(scene);
    let promised = "it is refused and told; once a person has moved it away work goes on by itself";
    outcome.tell(scene, "the database and its log truncated, or overwritten with garbage", promised);
    outcome.assert_sound(scene, RETRY + Outcome::a_lease());
}

/// Leaves half of a file, nothing, or garbage.
fn damage(file: &PathBuf, way: u32) {
    let Ok(bytes) = fs::read(file) else { return };
    let Ok(mut open) = fs::File::options().write(true).open(file) else { return };
    match way {
        0 => open.set_len(bytes.len() as u64 / 2).unwrap(),
        1 => open.set_len(0).unwrap(),
        _ => open.write_all(&vec![0xa5; bytes.len()]).unwrap(),
    }
}

fn database_held_by_another(scene: &mut Scene) {
    scene.place.add_parameter("lock_timeout=300ms");
    let mut harm = Harm::usual(scene, times(4, 50));
    while harm.goes_on(ms(300)) {
        let length = harm.length(ms(10), ms(2_500));
        harm.harm(scene, |_, scene| {
            let other = open(scene).unwrap();
            other.execute_batch("BEGIN IMMEDIATE").unwrap();
            let begun = now();
            while now() < begun + micros(length) {
                thread::sleep(ms(1));
            }
            other.execute_batch("ROLLBACK").unwrap();
        });
    }
    let outcome = harm.end(scene);
    let promised = "T1 to T3: nothing is lost, nothing runs twice at a time, and work goes on by itself";
    outcome.tell(scene, "the write lock held by another program for up to 2.5 s", promised);
    outcome.assert_sound(scene, RETRY + Outcome::a_lease());
}
