//! The tables of something that is kept in a database, and what version of them there is.

use interval_queue_contract::{StateError, StateErrorKind};
use interval_queue_store::files::Patience;
use rusqlite::{Connection, OptionalExtension};

use super::{
    database::begin,
    error::{Fault, told},
    place::Place,
};

/// What something that is kept in a database needs there.
#[derive(Debug)]
pub(crate) struct Schema {
    /// The name of its table. The table of that name with `_schema` behind it says which version it has.
    pub(crate) table: &'static str,
    /// Each brings the tables from the version of its index to the next one.
    pub(crate) migrations: &'static [&'static str],
}

impl Schema {
    /// The version of the tables that are there; none: 0.
    pub(crate) fn version(&self, connection: &Connection, place: &Place) -> Result<usize, Fault> {
        let table = self.table;
        let refused =
            |kind, what: &str| Err(told(place, kind, &what.replace("interval_queue", table)).into());
        let mut names = connection.prepare(
            "SELECT lower(name) = ?1 FROM sqlite_schema WHERE lower(name) IN (?1, ?1 || '_schema') ORDER BY name",
        )?;
        let names: Vec<bool> = names.query_map([table], |row| row.get(0))?.collect::<Result<_, _>>()?;
        let version = match names[..] {
            [] => return Ok(0),
            [true] => {
                let what = "has a table interval_queue that is not of this software: choose another path";
                return refused(StateErrorKind::Foreign, what);
            }
            [false] => {
                let what =
                    "has no table interval_queue any more: drop interval_queue_schema, too, to begin anew";
                return refused(StateErrorKind::Damaged, what);
            }
            _ => connection
                .query_row(&format!("SELECT version FROM {table}_schema"), [], |row| row.get::<_, i64>(0))
                .optional()?,
        };
        match version.and_then(|version| usize::try_from(version).ok()) {
            Some(version @ 1..) => Ok(version),
            _ => {
                let what = "does not say which version its tables interval_queue have: choose another path";
                refused(StateErrorKind::Foreign, what)
            }
        }
    }

    /// Refuses tables that a newer version of this software made, and says whether these are up to date.
    pub(crate) fn is_current(&self, place: &Place, version: usize) -> Result<bool, StateError> {
        let known = self.migrations.len();
        if version > known {
            let text = format!(
                "has tables of version {version}, this program works on up to {known}: upgrade the program"
            );
            return Err(told(place, StateErrorKind::NewerVersion, &text));
        }
        Ok(version == known)
    }

    /// Brings the tables up to date, all at once.
    pub(crate) fn migrate(
        &self,
        connection: &Connection,
        place: &Place,
        patience: &Patience,
    ) -> Result<(), Fault> {
        let transaction = begin(connection, patience)?;
        // Somebody else may have done so meanwhile.
        let version = self.version(connection, place)?;
        if self.is_current(place, version)? {
            return Ok(());
        }
        for migration in &self.migrations[version..] {
            transaction.execute_batch(migration)?;
        }
        let now = "INSERT INTO interval_queue_schema VALUES (1, ?1) ON CONFLICT DO UPDATE SET version = ?1";
        transaction.execute(&now.replace("interval_queue", self.table), [self.migrations.len() as i64])?;
        transaction.commit().map_err(Fault::Commit)
    }
}

#[cfg(test)]
#[path = "../../tests/unit/schema.rs"]
mod tests;
