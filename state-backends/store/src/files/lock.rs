//! The operating system's lock on a whole file. No other module locks files.
//!
//! The lock belongs to the open file, not to the process, and ends when the file is closed.

use std::{fs::File, io};

// Called by path, because the standard library has methods of these names from Rust 1.89 on.
use fs4::{FileExt, TryLockError};

/// Tries to lock a file. `false`: another open file holds the lock, or a signal came.
///
/// # Errors
///
/// The file cannot be locked.
pub fn try_lock(file: &File) -> io::Result<bool> {
    match FileExt::try_lock(file) {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Interrupted => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Locks a file; waits while another open file holds the lock.
///
/// # Errors
///
/// The file cannot be locked, or a signal came.
pub fn lock(file: &File) -> io::Result<()> {
    FileExt::lock(file)
}

/// Unlocks a file.
///
/// # Errors
///
/// The file cannot be unlocked. Closing it unlocks it, too.
pub fn unlock(file: &File) -> io::Result<()> {
    FileExt::unlock(file)
}
