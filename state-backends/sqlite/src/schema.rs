//! The tables, and what version of them there is.

use interval_queue_contract::{StateError, StateErrorKind};
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior};

use crate::{
    error::{Fault, told},
    patience::Patience,
    place::Place,
};

/// Each brings the tables from the version of its index to the next one.
const MIGRATIONS: &[&str] = &["
    CREATE TABLE interval_queue_schema (only_row INTEGER PRIMARY KEY CHECK (only_row = 1), version INTEGER NOT NULL) STRICT;
    CREATE TABLE interval_queue (name TEXT PRIMARY KEY, record TEXT NOT NULL) STRICT, WITHOUT ROWID;
"];

/// The version that this software makes, and the only one it works on.
pub(crate) const VERSION: usize = MIGRATIONS.len();

/// The version of the tables that are there; none: 0.
pub(crate) fn version(connection: &Connection, place: &Place) -> Result<usize, Fault> {
    let mut names = connection.prepare(
        "SELECT lower(name) FROM sqlite_schema
         WHERE name COLLATE NOCASE IN ('interval_queue', 'interval_queue_schema') ORDER BY 1",
    )?;
    let names: Vec<String> = names.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    let version = match names.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => return Ok(0),
        ["interval_queue"] => {
            let what = "has a table interval_queue that is not of this software: choose another path";
            return Err(told(place, StateErrorKind::Foreign, what).into());
        }
        ["interval_queue_schema"] => {
            let what = "has no table interval_queue any more: drop interval_queue_schema, too, to begin anew";
            return Err(told(place, StateErrorKind::Damaged, what).into());
        }
        _ => connection
            .query_row("SELECT version FROM interval_queue_schema", [], |row| row.get::<_, i64>(0))
            .optional()?,
    };
    match version.and_then(|version| usize::try_from(version).ok()) {
        Some(version @ 1..) => Ok(version),
        _ => {
            let what = "does not say which version its tables interval_queue have: choose another path";
            Err(told(place, StateErrorKind::Foreign, what).into())
        }
    }
}

/// Refuses tables that a newer version of this software made, and says whether these are up to date.
pub(crate) fn is_current(place: &Place, version: usize) -> Result<bool, StateError> {
    if version > VERSION {
        let text = format!(
            "has tables of version {version}, this program works on up to {VERSION}: upgrade the program"
        );
        return Err(told(place, StateErrorKind::NewerVersion, &text));
    }
    Ok(version == VERSION)
}

/// Brings the tables up to date, all at once.
pub(crate) fn migrate(connection: &Connection, place: &Place, patience: &Patience) -> Result<(), Fault> {
    migrate_by(MIGRATIONS, connection, place, patience)
}

fn migrate_by(
    migrations: &[&str],
    connection: &Connection,
    place: &Place,
    patience: &Patience,
) -> Result<(), Fault> {
    let transaction =
        patience.until_free(|| Transaction::new_unchecked(connection, TransactionBehavior::Immediate))?;
    // Somebody else may have done so meanwhile.
    let version = version(connection, place)?;
    let Some(missing @ [_, ..]) = migrations.get(version..) else { return Ok(()) };
    for migration in missing {
        transaction.execute_batch(migration)?;
    }
    transaction.execute(
        "INSERT INTO interval_queue_schema VALUES (1, ?1) ON CONFLICT DO UPDATE SET version = ?1",
        [migrations.len() as i64],
    )?;
    transaction.commit().map_err(Fault::Commit)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::SqliteState;

    #[test]
    fn older_tables_are_brought_up_to_date_as_a_whole_or_not_at_all() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("queues.db");
        let place = Place::find(&SqliteState::builder(&path)).unwrap();
        let connection = Connection::open(&path).unwrap();
        let patience = Patience::begin(Duration::from_secs(5));
        let migrate = |migrations: &[&str]| migrate_by(migrations, &connection, &place, &patience);
        migrate(MIGRATIONS).unwrap();
        connection.execute("INSERT INTO interval_queue VALUES ('mail', '{}')", []).unwrap();

        let [first] = MIGRATIONS else { panic!("there are more migrations: test with them") };
        let second = "ALTER TABLE interval_queue ADD COLUMN colour TEXT NOT NULL DEFAULT 'red'";
        migrate(&[first, second, "this is no SQL"]).unwrap_err();
        assert_eq!(version(&connection, &place).unwrap(), 1);
        connection.prepare("SELECT colour FROM interval_queue").unwrap_err();

        migrate(&[first, second]).unwrap();
        migrate(&[first, second]).unwrap();
        assert_eq!(version(&connection, &place).unwrap(), 2);
        let row = connection.query_row("SELECT name || colour FROM interval_queue", [], |row| row.get(0));
        assert_eq!(row, Ok("mailred".to_owned()));

        let error = is_current(&place, 2).unwrap_err();
        assert_eq!(error.kind(), StateErrorKind::NewerVersion);
        assert!(error.to_string().contains("upgrade the program"), "{error}");
    }
}
