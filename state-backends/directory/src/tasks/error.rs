//! Why a transaction failed.

use interval_queue_contract::{StateError, StateErrorKind};
use interval_queue_sqlite::index::Fault;
use interval_queue_store::files::cannot;
use interval_queue_task_contract::TaskId;
use rusqlite::{ErrorCode, ffi};

use crate::store::Location;

#[derive(Debug)]
pub(crate) enum TransactionError {
    /// The rules rejected the command, which has changed nothing.
    Refused(StateError),
    /// The files of these tasks differ from the index: scan them and start the command again.
    Recheck(Vec<TaskId>),
    Index(rusqlite::Error),
    /// It is unknown whether the command was stored.
    Commit(rusqlite::Error),
    /// The files failed before the commit.
    Files(StateError),
}

impl From<StateError> for TransactionError {
    fn from(error: StateError) -> Self {
        Self::Refused(error)
    }
}

impl From<Fault> for TransactionError {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Refused(error) => Self::Refused(error),
            Fault::Before(error) => Self::Index(error),
            Fault::Commit(error) => Self::Commit(error),
            Fault::Moved => Self::Index(rusqlite::Error::InvalidQuery),
        }
    }
}

impl From<rusqlite::Error> for TransactionError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Index(error)
    }
}

impl TransactionError {
    /// The index must be rebuilt.
    pub(super) fn is_corruption(&self) -> bool {
        match self {
            Self::Index(error) | Self::Commit(error) => {
                matches!(
                    error.sqlite_error_code(),
                    Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase)
                )
            }
            _ => false,
        }
    }

    pub(super) fn into_state_error(self, location: &Location) -> StateError {
        use StateErrorKind as Kind;
        match self {
            Self::Refused(error) | Self::Files(error) => error,
            Self::Recheck(_) => {
                location.error(Kind::Unreachable, "is changed all the time: leave what is leased alone")
            }
            Self::Index(error) if is_denied(&error) => {
                let denied = std::io::ErrorKind::PermissionDenied.into();
                cannot("use", &location.path().join("index.db"), denied).with_source(error)
            }
            Self::Index(error) if is_full(&error) => location
                .error(Kind::Full, "has no room left: free some; what was stored is as it was")
                .with_source(error),
            Self::Index(error) => {
                location.error(Kind::Unreachable, "cannot be used: its index.db failed").with_source(error)
            }
            Self::Commit(error) => {
                let what = "could not be flushed: what was stored last may be stored or not";
                location.error(Kind::TimedOut, what).with_source(error)
            }
        }
    }
}

/// SQLite opens the index read-only if this user may not write, or not at all.
fn is_denied(error: &rusqlite::Error) -> bool {
    use ErrorCode::{CannotOpen, PermissionDenied, ReadOnly};
    matches!(error.sqlite_error_code(), Some(CannotOpen | PermissionDenied | ReadOnly))
}

fn is_full(error: &rusqlite::Error) -> bool {
    let of_log = error.sqlite_error().is_some_and(|error| error.extended_code == ffi::SQLITE_IOERR_SHMSIZE);
    of_log || error.sqlite_error_code() == Some(ErrorCode::DiskFull)
}
