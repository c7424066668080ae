//! The file's location and options, and reads that change nothing.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use interval_queue_contract::{StateError, StateErrorKind};
use interval_queue_store::files::{LockTimeout, beside, resolve};

use super::{
    Builder, Clock,
    file::TextFile,
    lock::{LockFile, TryLock, lock_wait},
};

/// A longer holder is probably stopped between two system calls: the file is whole.
const MAX_READ_WAIT: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub(crate) struct Location {
    path: PathBuf,
    lock_path: PathBuf,
    try_lock: TryLock,
    pub(crate) options: Builder,
}

impl Location {
    pub(crate) fn find(options: Builder, try_lock: TryLock) -> Result<Self, StateError> {
        let path = resolve(&options.path, "queue.json")?;
        Ok(Self { lock_path: beside(&path, ".lock"), path, try_lock, options })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn clock(&self) -> Clock {
        self.options.clock
    }

    pub(crate) fn lock(&self) -> LockFile {
        LockFile::new(self.lock_path.clone(), self.try_lock)
    }

    pub(crate) fn lock_wait(&self) -> LockTimeout {
        lock_wait(self.options.lock_timeout)
    }

    /// Creates nothing.
    pub(crate) fn check<T>(
        &self,
        parse: impl Fn(&Path, Option<&[u8]>) -> Result<T, StateError>,
    ) -> Result<T, StateError> {
        let read = self.read(&parse);
        // Another process may be overwriting the file. Then a lock file exists.
        if read.is_err() && self.lock_path.exists() { self.query(parse) } else { read }
    }

    /// Reads without the lock if it stays taken.
    pub(crate) fn query<T>(
        &self,
        parse: impl FnOnce(&Path, Option<&[u8]>) -> Result<T, StateError>,
    ) -> Result<T, StateError> {
        let mut lock = self.lock();
        let held = lock.acquire(lock_wait(self.options.lock_timeout.min(MAX_READ_WAIT)));
        match (self.read(parse), held) {
            // A text read without the lock may be torn, so damage proves nothing.
            (Err(error), Err(why_not_held)) if error.kind() == StateErrorKind::Damaged => Err(why_not_held),
            (result, _) => result,
        }
    }

    fn read<T>(
        &self,
        parse: impl FnOnce(&Path, Option<&[u8]>) -> Result<T, StateError>,
    ) -> Result<T, StateError> {
        parse(&self.path, TextFile::read_named(&self.path, &mut Vec::new())?)
    }
}
