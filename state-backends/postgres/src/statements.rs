//! All that is said to the server in the course of a command.

use std::time::Duration;

use crate::Durability;

/// The statements of one state, with the names of its tables. They are not prepared: poolers that lend a
/// connection for a transaction mix prepared ones up.
#[derive(Debug)]
pub(crate) struct Statements {
    /// Begins a transaction that waits for a row, or for its client, only so long.
    pub(crate) begin: String,
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

impl Statements {
    pub(crate) fn new(schema: &str, timeout: Duration, durability: Durability) -> Self {
        let table = format!("{}.interval_queue", quoted(schema));
        let commit = match durability {
            Durability::Full => "",
            Durability::Relaxed => "; SET LOCAL synchronous_commit = off",
        };
        Self {
            begin: begin(timeout / 2) + commit,
            lock: look(&format!("SELECT record FROM {table} WHERE name = $1 FOR UPDATE")),
            read: look(&format!("SELECT record FROM {table} WHERE name = $1")),
            update: format!("UPDATE {table} SET record = $2::json WHERE name = $1"),
            insert: format!(
                "INSERT INTO {table} (name, record) VALUES ($1, $2::json) ON CONFLICT DO NOTHING"
            ),
            notify: format!("SELECT pg_notify({}, $1)", literal(schema)),
            names: format!("SELECT name FROM {table} ORDER BY name"),
        }
    }
}

/// Begins a transaction that waits only so long for what others hold, and for its client. Names mean what
/// they mean to the server, whatever an application calls `clock_timestamp` or `json` in a schema that its
/// users search first.
pub(crate) fn begin(patience: Duration) -> String {
    let millis = patience.as_millis();
    format!(
        "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL search_path = pg_catalog, pg_temp; \
         SET LOCAL lock_timeout = {millis}; SET LOCAL idle_in_transaction_session_timeout = {millis}"
    )
}

/// The clock stands in the outer select, so it is read when the inner one has its lock.
fn look(record: &str) -> String {
    format!(
        "SELECT row.record::text, clock_timestamp(), pg_postmaster_start_time() \
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
