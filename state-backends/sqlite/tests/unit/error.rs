//! What is said of a failure of SQLite.
use super::*;
use crate::SqliteStore;

#[test]
fn a_failed_commit_is_uncertain_only_if_it_was_written() {
    use StateErrorKind::{Full, TimedOut, Unreachable};
    let directory = tempfile::tempdir().unwrap();
    let location = Location::find(&SqliteStore::builder(directory.path().join("queues.db"))).unwrap();
    for (code, before, at_commit) in [
        (ffi::SQLITE_BUSY, Unreachable, Unreachable),
        (ffi::SQLITE_BUSY_RECOVERY, Unreachable, Unreachable),
        (ffi::SQLITE_FULL, Full, Full),
        (ffi::SQLITE_IOERR_FSYNC, Unreachable, TimedOut),
        (ffi::SQLITE_IOERR_SHMSIZE, Full, TimedOut),
        (ffi::SQLITE_IOERR_WRITE, Unreachable, TimedOut),
    ] {
        let error = || rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
        assert_eq!(Fault::Before(error()).into_error(&location).kind(), before, "{code}");
        let error_at_commit = Fault::Commit(error()).into_error(&location);
        assert_eq!(error_at_commit.kind(), at_commit, "{code}");
        assert!(error_at_commit.to_string().contains("queues.db"), "{error_at_commit}");
    }
}
