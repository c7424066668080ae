//! The tables and the SQL of rate limits.

use interval_queue_store::Component;

use crate::store::{literal, quoted};

pub(crate) const PACE: Component = Component {
    name: "interval_queue",
    first: 1,
    migrations: &[include_str!("migrations/1.sql")],
    declared: String::new,
    grants: "USAGE on the schema, SELECT on interval_queue_schema, and SELECT, INSERT, UPDATE, DELETE on interval_queue",
};

/// Tables have qualified names.
pub(super) struct Statements {
    /// Locks the row of `$1`. Returns the record, if any, the time after the lock was taken, and
    /// the start time of the server.
    pub(super) lock: String,
    /// As `lock`, without locking.
    pub(super) read: String,
    /// Requires the lock.
    pub(super) update: String,
    /// Creates the row of `$1`, unless it exists by now.
    pub(super) insert: String,
    /// Requires the lock.
    pub(super) delete: String,
    pub(super) notify: String,
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

/// The outer select reads the clock after the inner select has its lock.
fn with_clock(record: &str) -> String {
    format!(
        "SELECT row.record::text, clock_timestamp(), pg_postmaster_start_time() \
         FROM (VALUES (0)) AS one LEFT JOIN ({record}) AS row ON true"
    )
}
