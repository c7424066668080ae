//! A gate in front of the database: processes pass it one at a time, roughly in the order in which
//! they come.
//!
//! SQLite has no fair order: a process that finds the database locked retries after a pause, and
//! its share is a matter of chance. The operating system wakes a process that waits for a file lock
//! immediately, so shares are even.

use std::{
    fs::{File, OpenOptions},
    path::{Path, PathBuf},
};

use interval_queue_store::files::{beside, lock};

/// The locked file next to the database.
#[derive(Debug)]
pub struct Gate {
    path: PathBuf,
    /// `None`: not opened yet, or cannot be created; then every process passes. The gate does not
    /// protect the database; it only makes waiting fair.
    file: Option<File>,
}

impl Gate {
    /// The gate of the database at this path.
    pub fn beside(database: &Path) -> Self {
        Self { path: beside(database, "-gate"), file: None }
    }

    /// Waits without limit until no other process is between the gate and [`leave`](Self::leave).
    pub fn pass(&mut self) {
        if self.file.is_none() {
            let make = || OpenOptions::new().append(true).create(true).open(&self.path);
            // A user with the right to read the file may lock it, so users can share it.
            self.file = File::open(&self.path).or_else(|_| make()).ok();
        }
        let _ = self.file.as_ref().map(lock::lock);
    }

    /// Lets the next process pass.
    pub fn leave(&self) {
        let _ = self.file.as_ref().map(lock::unlock);
    }
}
