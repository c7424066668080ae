//! Faults of the stored keys, and commands that the script does not know.

use interval_queue_contract::{StateError, StateErrorKind};
use serde::Deserialize;

/// The command has changed nothing.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Fault {
    Foreign(String),
    /// The missing key, and the key of the rows.
    Lost(String, String),
    /// The stored layout, and the script's.
    Newer(u64, u64),
    /// The stored layout, and the script's.
    Older(u64, u64),
    Denied(String),
    Unknown(String),
}

impl From<Fault> for StateError {
    fn from(fault: Fault) -> Self {
        let (kind, text) = match fault {
            Fault::Foreign(what) => {
                (StateErrorKind::Foreign, format!("these are not the tasks of an interval queue: {what}"))
            }
            Fault::Lost(key, rows) => (
                StateErrorKind::Damaged,
                format!(
                    "redis has lost the key {key:?}, a part of the queue: it was evicted or deleted; restore it from a \
                     backup, or delete {rows:?} and all keys that begin with it to start over, and set maxmemory-policy \
                     noeviction"
                ),
            ),
            Fault::Newer(stored, read) => (
                StateErrorKind::NewerVersion,
                format!(
                    "the tasks are stored in layout {stored}, this program reads layout {read}: upgrade it"
                ),
            ),
            Fault::Older(stored, read) => (
                StateErrorKind::Unsupported,
                format!(
                    "the tasks are stored in layout {stored}, this program reads layout {read}: finish them with the program \
                     that added them, or take another prefix"
                ),
            ),
            Fault::Denied(command) => (
                StateErrorKind::Denied,
                format!("the redis user may not run {command} on the keys of the queue: extend its ACL"),
            ),
            Fault::Unknown(what) => (
                StateErrorKind::Unsupported,
                format!("this version of interval-queue-redis does not know {what}: upgrade it"),
            ),
        };
        Self::new(kind, text)
    }
}
