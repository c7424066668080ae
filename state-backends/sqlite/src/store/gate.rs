//! The gate before the database: processes pass it one at a time, in about the order in which they come.
//!
//! SQLite has no line: whoever finds the database taken looks again after a while, and where several store all the
//! time, two of four are never served. The operating system wakes those who wait for the lock of a file at once.

use std::{
    fs::{File, OpenOptions},
    path::Path,
};

use interval_queue_store::files::beside;

/// The file beside the database that is locked.
#[derive(Debug)]
pub(crate) struct Gate {
    /// None: there can be none, and everybody passes. It keeps nobody from the database; it only makes waiting fair.
    file: Option<File>,
}

impl Gate {
    pub(crate) fn beside(database: &Path) -> Self {
        let path = beside(database, "-gate");
        // Whoever may read it may lock it, so that users may share it.
        let file = File::open(&path).or_else(|_| OpenOptions::new().append(true).create(true).open(&path));
        Self { file: file.ok() }
    }

    /// Waits, for as long as it takes, until nobody else is between the gate and [`leave`](Self::leave).
    pub(crate) fn pass(&self) {
        let _ = self.file.as_ref().map(File::lock);
    }

    /// Lets the next one pass.
    pub(crate) fn leave(&self) {
        let _ = self.file.as_ref().map(File::unlock);
    }
}
