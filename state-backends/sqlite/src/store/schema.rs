//! The version and the migrations of a component's tables.

use interval_queue_store::{Component, Found, files::LockTimeout};
use rusqlite::Connection;

use super::{database::begin, error::Fault, location::Location};

/// 0: there are no tables.
pub(crate) fn version(
    component: &Component,
    connection: &Connection,
    location: &Location,
) -> Result<usize, Fault> {
    let are_there = "SELECT count(*) FILTER (WHERE lower(name) = ?1) > 0, count(*) FILTER (WHERE lower(name) = ?2) > 0 \
                     FROM sqlite_schema";
    let of_version = component.version_table();
    let (table, has_version) = connection.query_row(are_there, [component.name, &of_version], |row| {
        Ok((row.get::<_, bool>(0)?, row.get::<_, bool>(1)?))
    })?;
    let mut versions = None;
    if has_version {
        let mut stored = connection.prepare(&format!("SELECT version FROM {of_version}"))?;
        versions = Some(stored.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?);
    }
    let path = location.path().display().to_string();
    let found = Found { place: &path, advice: "choose another path", table, versions };
    Ok(component.version(&found)?)
}

/// Begins a transaction.
pub(crate) fn migrate(
    component: &Component,
    connection: &Connection,
    location: &Location,
    timeout: &LockTimeout,
) -> Result<(), Fault> {
    let transaction = begin(connection, timeout)?;
    upgrade(component, &transaction, location)?;
    transaction.commit().map_err(Fault::Commit)
}

/// Requires an open transaction.
pub(crate) fn upgrade(
    component: &Component,
    connection: &Connection,
    location: &Location,
) -> Result<(), Fault> {
    // Another process may have upgraded the tables in the meantime.
    let Some(steps) = component.steps(version(component, connection, location)?) else { return Ok(()) };
    Ok(connection.execute_batch(&steps)?)
}

#[cfg(test)]
#[path = "../../tests/unit/schema_unit.rs"]
mod tests;
