//! Tables of several versions, and of several things in one database.

use std::time::Duration;

use interval_queue_contract::StateErrorKind;

use super::*;
use crate::SqliteStore;

const FIRST: &str = "
    CREATE TABLE thing_schema (only_row INTEGER PRIMARY KEY CHECK (only_row = 1), version INTEGER NOT NULL) STRICT;
    INSERT INTO thing_schema VALUES (1, 1);
    CREATE TABLE thing (name TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
";
const SECOND: &str = "ALTER TABLE thing ADD COLUMN colour TEXT NOT NULL DEFAULT 'red';";

const fn thing(migrations: &'static [&'static str]) -> Component {
    Component { name: "thing", first: 1, migrations, declared: String::new, grants: "" }
}

#[test]
fn older_tables_are_brought_up_to_date_as_a_whole_or_not_at_all() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("queues.db");
    let location = Location::find(&SqliteStore::builder(&path)).unwrap();
    let connection = Connection::open(&path).unwrap();
    let migrate = |migrations| migrate(&thing(migrations), &connection, &location, &location.begin_timeout());
    let version = |migrations| version(&thing(migrations), &connection, &location);
    migrate(&[FIRST]).unwrap();
    connection.execute("INSERT INTO thing VALUES ('mail')", []).unwrap();

    migrate(&[FIRST, SECOND, "this is no SQL"]).unwrap_err();
    assert_eq!(version(&[FIRST, SECOND]).unwrap(), 1);
    connection.prepare("SELECT colour FROM thing").unwrap_err();

    migrate(&[FIRST, SECOND]).unwrap();
    migrate(&[FIRST, SECOND]).unwrap();
    assert_eq!(version(&[FIRST, SECOND]).unwrap(), 2);
    let row = connection.query_row("SELECT name || colour FROM thing", [], |row| row.get(0));
    assert_eq!(row, Ok("mailred".to_owned()));

    let error = version(&[FIRST]).unwrap_err().into_error(&location);
    assert_eq!(error.kind(), StateErrorKind::NewerVersion);
    assert!(error.to_string().contains("upgrade the program"), "{error}");
}

#[tokio::test]
async fn several_things_are_kept_in_one_database() {
    static THING: Component = thing(&[FIRST, SECOND]);
    let directory = tempfile::tempdir().unwrap();
    let builder = SqliteStore::builder(directory.path().join("queues.db"));
    let store = builder.lock_timeout(Duration::from_secs(60)).open().await.unwrap();
    let count = "SELECT (SELECT count(*) FROM thing) + (SELECT count(*) FROM interval_queue)";
    let counted = |on: &Connection| Ok(on.query_row(count, [], |row| row.get::<_, i64>(0))?);
    store.change(&crate::pace::QUEUES, |_| Ok(())).await.unwrap();
    assert_eq!(store.read(&THING, counted).await.unwrap(), None);
    store.change(&THING, |on| Ok(on.execute("INSERT INTO thing (name) VALUES ('a')", [])?)).await.unwrap();
    assert_eq!(store.read(&THING, counted).await.unwrap(), Some(1));
}

#[tokio::test]
async fn a_read_leaves_older_tables_and_a_write_upgrades_them() {
    static OLDER: Component = thing(&[FIRST]);
    static NEWER: Component = thing(&[FIRST, SECOND]);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("queues.db");
    let opened =
        async || SqliteStore::builder(&path).lock_timeout(Duration::from_secs(60)).open().await.unwrap();
    let fill = |on: &Connection| Ok(on.execute("INSERT INTO thing VALUES ('mail')", [])?);
    opened().await.change(&OLDER, fill).await.unwrap();
    let store = opened().await;
    let colour =
        |on: &Connection| Ok(on.query_row("SELECT colour FROM thing", [], |row| row.get::<_, String>(0))?);
    let error = store.read(&NEWER, colour).await.unwrap_err();
    assert!(error.to_string().contains("the next command that stores brings them up to date"), "{error}");
    store.change(&NEWER, |_| Ok(())).await.unwrap();
    assert_eq!(store.read(&NEWER, colour).await.unwrap().as_deref(), Some("red"));
}
