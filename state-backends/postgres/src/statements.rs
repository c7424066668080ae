//! All that is said to the server in the course of a command.

use std::time::Duration;

use crate::Durability;

/// The statements of one state, with the names of its tables. Each connection has them prepared, once it has used them.
#[derive(Debug)]
pub(crate) struct Statements {
    /// A transaction waits for a row, or for its client, only so long.
    pub(crate) limits: String,
    /// Locks the row of `$1`: its record if there is one, the clock as it is then, and which server this is.
    pub(crate) lock: String,
    /// The same without a lock.
    pub(crate) read: String,
    /// Replaces the record of `$1`, which is locked, by `$2`.
    pub(crate) update: String,
    /// Creates the row of `$1`, unless somebody else has by now.
    pub(crate) insert: String,
    /// Tells those who watch that the queue `$1` was changed.
    pub(crate) notify: String,
    /// The names of all queues.
    pub(crate) names: String,
}

/// Whatever the database, the user or the pool prefers.
pub(crate) const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED";

impl Statements {
    pub(crate) fn new(schema: &str, timeout: Duration, durability: Durability) -> Self {
        let table = format!("{}.interval_queue", quoted(schema));
        let millis = (timeout / 2).as_millis();
        let commit = match durability {
            Durability::Full => "",
            Durability::Relaxed => ", set_config('synchronous_commit', 'off', true)",
        };
        Self {
            limits: format!(
                "SELECT set_config('lock_timeout', '{millis}', true), \
                 set_config('idle_in_transaction_session_timeout', '{millis}', true){commit}"
            ),
            lock: look(&format!("SELECT record FROM {table} WHERE name = $1 FOR UPDATE")),
            read: look(&format!("SELECT record FROM {table} WHERE name = $1")),
            update: format!("UPDATE {table} SET record = $2::text::json WHERE name = $1"),
            insert: format!(
                "INSERT INTO {table} (name, record) VALUES ($1, $2::text::json) ON CONFLICT DO NOTHING"
            ),
            notify: format!("SELECT pg_notify({}, $1)", literal(schema)),
            names: format!("SELECT name FROM {table} ORDER BY name"),
        }
    }
}

/// The clock stands in the outer select, so it is read when the inner one has its lock.
fn look(record: &str) -> String {
    format!(
        "SELECT row.record::text, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, \
         extract(epoch FROM pg_postmaster_start_time())::text \
         FROM (VALUES (0)) AS one LEFT JOIN ({record}) AS row ON true"
    )
}

/// A name as SQL writes it.
pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A text as SQL writes it, whatever the server takes a backslash for.
pub(crate) fn literal(text: &str) -> String {
    format!("E'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}
