//! Errors of the operating system with path and remedy.

use std::{io, path::Path};

use interval_queue_contract::{StateError, StateErrorKind};

/// The error of an attempt to `verb` the file or directory at `path`.
pub fn cannot(verb: &str, path: &Path, error: io::Error) -> StateError {
    use io::ErrorKind as Os;
    let (kind, way_out) = match error.kind() {
        Os::NotFound => (StateErrorKind::NotFound, "its directory does not exist: create it"),
        Os::PermissionDenied => (
            StateErrorKind::Denied,
            "this user needs the right to write to the directory and to read and write the files in it",
        ),
        Os::ReadOnlyFilesystem => (
            StateErrorKind::Denied,
            "the file system is read-only: choose another place or mount it writable",
        ),
        Os::StorageFull | Os::QuotaExceeded | Os::FileTooLarge => {
            (StateErrorKind::Full, "there is no room left: free some; what was stored is as it was")
        }
        Os::IsADirectory | Os::NotADirectory | Os::InvalidFilename | Os::InvalidInput => {
            (StateErrorKind::Invalid, "give the path of a file in a directory that exists")
        }
        Os::ResourceBusy => (
            StateErrorKind::Unsupported,
            "it is a mount point of its own and cannot be replaced: mount its directory instead",
        ),
        Os::Unsupported => {
            (StateErrorKind::Unsupported, "this file system cannot do that: use a local disk or Redis")
        }
        _ => (StateErrorKind::Unreachable, "the file system failed"),
    };
    StateError::new(kind, format!("cannot {verb} {}: {way_out}", path.display())).with_source(error)
}
