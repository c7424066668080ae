//! Migrations of SQL stores: which are missing, and errors of unusable tables. No I/O.

use interval_queue_contract::{StateError, StateErrorKind};

/// A set of tables on a store: `NAME`, and `NAME_schema` with the version in one row. Components on
/// one store are independent.
#[derive(Clone, Copy, Debug)]
pub struct Component {
    /// The name of the main table.
    pub name: &'static str,
    /// The version that the first migration creates. Earlier ones, never released, are rejected.
    pub first: usize,
    /// SQL per version. The first creates the tables; each other upgrades from the version before.
    pub migrations: &'static [&'static str],
    /// SQL after each upgrade: creates what is declared in code and missing.
    pub declared: fn() -> String,
    /// The rights of a user who may not create tables, as in `grant it …`.
    pub grants: &'static str,
}

/// The tables of a component as found on a store.
#[derive(Clone, Debug)]
pub struct Found<'a> {
    /// Location of the tables in errors: a schema or a path.
    pub place: &'a str,
    /// Remedy if something else owns the location, such as `choose another schema`.
    pub advice: &'a str,
    /// Whether the main table exists.
    pub table: bool,
    /// The rows of `NAME_schema`. `None`: there is no such table.
    pub versions: Option<Vec<i64>>,
}

impl Component {
    /// The name of the table that stores the version.
    pub fn version_table(&self) -> String {
        format!("{}_schema", self.name)
    }

    /// The version that this program works on.
    pub fn known(&self) -> usize {
        self.first + self.migrations.len() - 1
    }

    /// The version of the tables found; 0: there are none.
    ///
    /// # Errors
    ///
    /// | kind | why |
    /// |---|---|
    /// | `Foreign` | another program made the tables |
    /// | `Damaged` | a table is missing |
    /// | `NewerVersion` | a newer version of this software made the tables |
    /// | `Unsupported` | a version before the first release made the tables |
    pub fn version(&self, found: &Found<'_>) -> Result<usize, StateError> {
        let Found { place, advice, .. } = found;
        let (name, known) = (self.name, self.known());
        let (kind, text) = match (found.table, found.versions.as_deref()) {
            (false, None) => return Ok(0),
            (true, Some(&[version])) if version > 0 => match usize::try_from(version) {
                Ok(version) if (self.first..=known).contains(&version) => return Ok(version),
                Ok(version) if version < self.first => (
                    StateErrorKind::Unsupported,
                    format!(
                        "{place} has tables {name} of version {version}, this program works on {known}: finish the work with \
                         the program that stored it, or {advice}"
                    ),
                ),
                _ => (
                    StateErrorKind::NewerVersion,
                    format!(
                        "{place} has tables {name} of version {version}, this program works on up to {known}: upgrade the program"
                    ),
                ),
            },
            (true, Some(_)) => (
                StateErrorKind::Foreign,
                format!(
                    "{place} has a table {name}_schema that does not have a version from 1 in one row: {advice}"
                ),
            ),
            (true, None) => (
                StateErrorKind::Foreign,
                format!("{place} has a table {name} that is not of this software: {advice}"),
            ),
            (false, Some(_)) => (
                StateErrorKind::Damaged,
                format!("{place} has no table {name} any more: drop {name}_schema, too, to start over"),
            ),
        };
        Err(StateError::new(kind, text))
    }

    /// SQL that upgrades tables from `version`, for one transaction. `None`: they are up to date.
    pub fn steps(&self, version: usize) -> Option<String> {
        let missing = self.migrations.get((version + 1).saturating_sub(self.first)..);
        let missing = missing.filter(|missing| !missing.is_empty())?.join("\n");
        let (declared, name) = ((self.declared)(), self.name);
        Some(format!("{missing}\n{declared}UPDATE {name}_schema SET version = {};\n", self.known()))
    }

    /// The error of a user who may not use existing tables.
    pub fn may_not_use(&self, user: &str, place: &str) -> StateError {
        let text = format!("user {user} may not use {place}: grant it {}", self.grants);
        StateError::new(StateErrorKind::Denied, text)
    }

    /// The error of a user who may not execute [`steps`](Self::steps) from `version`.
    pub fn may_not_migrate(&self, user: &str, place: &str, version: usize) -> StateError {
        let Self { name, grants, .. } = self;
        let text = match version {
            0 => format!(
                "user {user} may not create the tables {name} in {place}: let an owner open a queue once or run `interval-queue migrate`, then grant {user} {grants}"
            ),
            _ => format!(
                "the tables {name} in {place} have version {version}, this program needs {}, and user {user} may not change \
                 them: let their owner open a queue once",
                self.known()
            ),
        };
        StateError::new(StateErrorKind::Denied, text)
    }
}
