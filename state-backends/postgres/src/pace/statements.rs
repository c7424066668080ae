//! The tables of the pace, and all that is said of them in the course of a command.

use interval_queue_store::Component;

use crate::store::{literal, quoted};

/// The tables, with what makes each version of them out of the one before.
pub(crate) const PACE: Component = Component {
    name: "interval_queue",
    first: 1,
    migrations: &[include_str!("migrations/1.sql")],
    grants: "USAGE on the schema, SELECT on interval_queue_schema, and SELECT, INSERT, UPDATE, DELETE on interval_queue",
};

/// The statements of one state, with the names of its tables.
pub(super) struct Statements {
    /// Locks the row of `$1`: its record if there is one, the clock as it is then, and which server this is.
    pub(super) lock: String,
    /// The same without a lock.
    pub(super) read: String,
    /// Replaces the record of `$1`, which is locked, by `$2`.
    pub(super) update: String,
    /// Creates the row of `$1`, unless somebody else has by now.
    pub(super) insert: String,
    /// Removes the row of `$1`, which is locked.
    pub(super) delete: String,
    /// Tells those who watch that the queue `$1` was changed.
    pub(super) notify: String,
    /// The names of all queues.
    pub(super) names: String,
}

impl Statements {
    pub(super) fn new(schema: &str) -> Self {
        let table = format!("{}.{}", quoted(schema), PACE.name);
        Self {
            lock: with_clock(&format!("SELECT record FROM {table} WHERE name = $1 FOR UPDATE")),
            read: with_clock(&format!("SELECT record FROM {table} WHERE name = $1")),
            update: format!("UPDATE {table} SET record = $2::json WHERE name = $1"),
            insert: format!(
                "INSERT INTO {table} (name, record) VALUES ($1, $2::json) ON CONFLICT DO NOTHING"
            ),
            delete: format!("DELETE FROM {table} WHERE name = $1"),
            notify: format!("SELECT pg_notify({}, $1)", literal(schema)),
            names: format!("SELECT name FROM {table} ORDER BY name"),
        }
    }
}

/// The clock stands in the outer select, so it is read when the inner one has its lock.
fn with_clock(record: &str) -> String {
    format!(
        "SELECT row.record::text, clock_timestamp(), pg_postmaster_start_time() \
         FROM (VALUES (0)) AS one LEFT JOIN ({record}) AS row ON true"
    )
}
