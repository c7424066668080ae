//! Tables on an SQL store: which of a component's migrations are to be made there, and what is said of tables
//! that cannot be used. Nothing here talks to a database; each store carries out what is decided.

use interval_queue_contract::{StateError, StateErrorKind};

/// Something that keeps tables of its own on a store: one with its name, and `NAME_schema`, in which one row
/// tells their version. Several components share a store and do not know of each other.
#[derive(Clone, Copy, Debug)]
pub struct Component {
    /// The name of its main table.
    pub name: &'static str,
    /// The version that the first migration makes. Tables of an earlier version are refused: it was never released.
    pub first: usize,
    /// Each makes a version out of the one before. The first one makes the tables.
    pub migrations: &'static [&'static str],
    /// What a user needs who may not make the tables, as in `grant it …`.
    pub grants: &'static str,
}

/// What a store has of a component.
#[derive(Clone, Debug)]
pub struct Found<'a> {
    /// Where the tables are or would be, as errors name it: a schema or a path.
    pub place: &'a str,
    /// The way out if the place belongs to somebody else, such as `choose another schema`.
    pub advice: &'a str,
    /// Whether the main table is there.
    pub table: bool,
    /// The versions in `NAME_schema`; none: there is no such table.
    pub versions: Option<Vec<i64>>,
}

impl Component {
    /// The table that has the version.
    pub fn version_table(&self) -> String {
        format!("{}_schema", self.name)
    }

    /// The version that this program works on.
    pub fn known(&self) -> usize {
        self.first + self.migrations.len() - 1
    }

    /// The version of the tables that were found; 0: there are none.
    ///
    /// # Errors
    ///
    /// | kind | why |
    /// |---|---|
    /// | `Foreign` | something else made the tables |
    /// | `Damaged` | a table is missing |
    /// | `NewerVersion` | a newer version of this software made them |
    /// | `Unsupported` | a version before the first release made them |
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
                    "{place} has a table {name}_schema that does not tell a version from 1 in one row: {advice}"
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

    /// What makes tables of this program's version out of those of another one, to be carried out in one
    /// transaction; none: they are up to date.
    pub fn steps(&self, version: usize) -> Option<String> {
        let missing = self.migrations.get((version + 1).saturating_sub(self.first)..);
        let missing = missing.filter(|missing| !missing.is_empty())?.join("\n");
        Some(format!("{missing}\nUPDATE {}_schema SET version = {};\n", self.name, self.known()))
    }

    /// The error of a user who may not use tables that are there.
    pub fn may_not_use(&self, user: &str, place: &str) -> StateError {
        let text = format!("user {user} may not use {place}: grant it {}", self.grants);
        StateError::new(StateErrorKind::Denied, text)
    }

    /// The error of a user who may not carry out the [`steps`](Self::steps) from this version.
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
