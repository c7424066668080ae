//! The gate before the database: processes pass it one at a time, in about the order in which they come.
//!
//! SQLite has no line: a process that finds the database taken looks again after a while, and how often it gets it is
//! chance. The operating system wakes one that waits for the lock of a file at once, so that shares are even.

use std::{
    fs::{File, OpenOptions},
    path::{Path, PathBuf},
};

use interval_queue_store::files::{beside, lock};

/// The file beside the database that is locked.
#[derive(Debug)]
pub struct Gate {
    path: PathBuf,
    /// None: there is none yet, or there can be none, and everybody passes. It keeps nobody from the database; it only
    /// makes waiting fair.
    file: Option<File>,
}

impl Gate {
    /// That of the database at this path.
    pub fn beside(database: &Path) -> Self {
        Self { path: beside(database, "-gate"), file: None }
    }

    /// Waits, for as long as it takes, until nobody else is between the gate and [`leave`](Self::leave).
    pub fn pass(&mut self) {
        if self.file.is_none() {
            let make = || OpenOptions::new().append(true).create(true).open(&self.path);
            // A user who may read it may lock it, so that users may share it.
            self.file = File::open(&self.path).or_else(|_| make()).ok();
        }
        let _ = self.file.as_ref().map(lock::lock);
    }

    /// Lets the next one pass.
    pub fn leave(&self) {
        let _ = self.file.as_ref().map(lock::unlock);
    }
}
