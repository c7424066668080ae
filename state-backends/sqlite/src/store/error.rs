//! Errors that name the path and a remedy.

use std::io;

use interval_queue_contract::{StateError, StateErrorKind};
use interval_queue_store::files::cannot;
use rusqlite::{
    ErrorCode::{self, DatabaseBusy, DatabaseLocked, FileLockingProtocolFailed},
    ffi,
};

use super::location::Location;

/// The reason why an attempt at a command failed.
#[derive(Debug)]
pub enum Fault {
    /// The path, or a table, is not the one that was opened. Nothing was stored.
    Moved,
    /// An error of the command. The database is in order. Nothing was stored.
    Refused(StateError),
    /// SQLite failed before the commit. Nothing was stored.
    Before(rusqlite::Error),
    /// SQLite failed at the commit.
    Commit(rusqlite::Error),
}

impl From<StateError> for Fault {
    fn from(error: StateError) -> Self {
        Fault::Refused(error)
    }
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        Fault::Before(error)
    }
}

impl Fault {
    pub(crate) fn into_error(self, location: &Location) -> StateError {
        match self {
            Fault::Refused(error) => error,
            Fault::Moved => {
                path_error(location, StateErrorKind::Unreachable, "is replaced all the time: leave it alone")
            }
            Fault::Before(error) => of_sqlite(location, error),
            // A commit without the lock or without space was rolled back. A commit that was written
            // but not flushed or published may be recovered later from the log.
            Fault::Commit(error) if is_busy(&error) || code(&error) == Some(ErrorCode::DiskFull) => {
                of_sqlite(location, error)
            }
            Fault::Commit(error) => {
                let text = "could not be flushed: what was written last may be stored or not";
                path_error(location, StateErrorKind::TimedOut, text).with_source(error)
            }
        }
    }
}

pub(crate) fn code(error: &rusqlite::Error) -> Option<ErrorCode> {
    match error {
        rusqlite::Error::SqlInputError { error, .. } | rusqlite::Error::SqliteFailure(error, _) => {
            Some(error.code)
        }
        _ => None,
    }
}

/// Another process writes, recovers from a killed process, or closes the database as the last user.
pub(crate) fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(code(error), Some(DatabaseBusy | DatabaseLocked | FileLockingProtocolFailed))
}

pub(crate) fn path_error(location: &Location, kind: StateErrorKind, what: &str) -> StateError {
    StateError::new(kind, format!("{} {what}", location.path().display()))
}

fn of_sqlite(location: &Location, error: rusqlite::Error) -> StateError {
    use StateErrorKind as Kind;
    let no_room = (Kind::Full, "has no room left: free some; what was stored is as it was");
    let (kind, what) = match code(&error) {
        _ if is_busy(&error) => {
            return held_too_long(location).with_source(error);
        }
        Some(ErrorCode::CannotOpen) => return cannot_open(location, error),
        Some(ErrorCode::DiskFull) => no_room,
        // The index of the log could not grow.
        Some(ErrorCode::SystemIoFailure)
            if error.sqlite_error().is_some_and(|error| error.extended_code == ffi::SQLITE_IOERR_SHMSIZE) =>
        {
            no_room
        }
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
            return read_only(location).with_source(error);
        }
        Some(ErrorCode::NotADatabase) => (Kind::Foreign, "is not an SQLite database: choose another path"),
        Some(ErrorCode::DatabaseCorrupt) => (
            Kind::Damaged,
            "is damaged: put a good copy in its place, or move it away with its -wal and -shm to start over",
        ),
        Some(ErrorCode::SystemIoFailure) => (Kind::Unreachable, "cannot be used: the file system failed"),
        Some(ErrorCode::OutOfMemory) => (Kind::Unreachable, "cannot be used: there is no memory left"),
        Some(ErrorCode::Unknown | ErrorCode::ConstraintViolation | ErrorCode::SchemaChanged) => (
            Kind::Foreign,
            "has tables interval_queue that are not as this program makes them: choose another path",
        ),
        Some(_) => (Kind::Unreachable, "cannot be used: SQLite failed"),
        // A value that is no text, or a path with a zero byte.
        None => (Kind::Damaged, "holds what cannot be read as text: put a good copy in its place"),
    };
    path_error(location, kind, what).with_source(error)
}

pub(crate) fn held_too_long(location: &Location) -> StateError {
    let timeout = location.lock_timeout();
    let text =
        format!("was held by another process for {timeout:?}: find it, for example with fuser, and end it");
    path_error(location, StateErrorKind::Unreachable, &text)
}

/// Finds the reason, which SQLite does not report.
fn cannot_open(location: &Location, error: rusqlite::Error) -> StateError {
    if let Err(why) = location.is_there() {
        return why;
    }
    #[cfg(unix)]
    {
        use rustix::fs::{Access, access, statvfs};

        if let Err(why) = location.check_writable() {
            return why;
        }
        match access(location.path(), Access::READ_OK).map_err(io::Error::from) {
            Err(why) if why.kind() != io::ErrorKind::NotFound => return cannot("open", location.path(), why),
            _ => {}
        }
        if statvfs(location.directory()).is_ok_and(|disk| disk.f_bavail == 0 || disk.f_favail == 0) {
            return cannot("open", location.path(), io::ErrorKind::StorageFull.into());
        }
    }
    path_error(
        location,
        StateErrorKind::Unreachable,
        "or its log cannot be opened: check the files next to it",
    )
    .with_source(error)
}

pub(crate) fn read_only(location: &Location) -> StateError {
    if let Err(why) = location.check_writable() {
        return why;
    }
    path_error(
        location,
        StateErrorKind::Denied,
        "cannot be written to: this user needs the right to, and to its directory",
    )
}

#[cfg(test)]
#[path = "../../tests/unit/error.rs"]
mod tests;
