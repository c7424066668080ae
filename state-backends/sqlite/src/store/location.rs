//! The path of the database, the files that currently have its names, and the right to create it.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::{Duration, SystemTime},
};

use interval_queue_contract::{StateError, StateErrorKind};
use interval_queue_store::files::{
    FileId, LockTimeout, beside, cannot, check_mount, create, directory, lock::try_lock, resolve,
};

use super::{Builder, Durability, error::path_error};

/// A database of more than one page has a table.
const PAGE_BYTES: u64 = 4096;
/// Bounds of the maximum pause between attempts. SQLite's own busy handler pauses for up to 100 ms,
/// and is not called in all cases.
const MAX_PAUSE_BOUNDS: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(10));

#[derive(Debug)]
pub(crate) struct Location {
    path: PathBuf,
    log: PathBuf,
    index: PathBuf,
    durability: Durability,
    lock_timeout: Duration,
    open: Mutex<Option<Files>>,
    /// The file as of the last check by a new connection.
    checked: Mutex<Option<Written>>,
}

/// Time of the last write to a file, and its length.
pub(crate) type Written = (SystemTime, u64);

impl Location {
    pub(crate) fn find(options: &Builder) -> Result<Self, StateError> {
        let invalid = |what| Err(StateError::new(StateErrorKind::Invalid, what));
        if options.path.as_os_str().is_empty() {
            return invalid(
                "the path is empty: give that of a database file, or use memory: within one process",
            );
        }
        if options.path == Path::new(":memory:") {
            return invalid(
                "\":memory:\" is shared with nobody: use memory: within one process, or give a path",
            );
        }
        let path = resolve(&options.path, "queues.db")?;
        Ok(Self {
            log: beside(&path, "-wal"),
            index: beside(&path, "-shm"),
            path,
            durability: options.durability,
            lock_timeout: options.lock_timeout,
            open: Mutex::new(None),
            checked: Mutex::new(None),
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn directory(&self) -> &Path {
        directory(&self.path)
    }

    pub(crate) fn durability(&self) -> Durability {
        self.durability
    }

    pub(crate) fn lock_timeout(&self) -> Duration {
        self.lock_timeout
    }

    pub(crate) fn begin_timeout(&self) -> LockTimeout {
        LockTimeout::begin(self.lock_timeout, MAX_PAUSE_BOUNDS)
    }

    /// Fails if the directory is missing.
    pub(crate) fn is_there(&self) -> Result<bool, StateError> {
        match fs::metadata(&self.path) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                fs::metadata(self.directory()).map(|_| false)
            }
            Err(error) => Err(error),
        }
        .map_err(|error| cannot("use", &self.path, error))
    }

    /// Includes the right to create the database.
    pub(crate) fn check_writable(&self) -> Result<(), StateError> {
        #[cfg(unix)]
        {
            use rustix::fs::{Access, access};

            self.is_there()?;
            let failed = |error: io::Error| cannot("write to", &self.path, error);
            access(self.directory(), Access::WRITE_OK | Access::EXEC_OK)
                .map_err(|error| failed(error.into()))?;
            match access(&self.path, Access::WRITE_OK).map_err(io::Error::from) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
                _ => {}
            }
        }
        Ok(())
    }

    pub(crate) fn check_mount(&self) -> Result<(), StateError> {
        check_mount(&self.path)
    }

    /// Files are never opened here: closing one would release the locks of this process that SQLite
    /// holds on it.
    pub(crate) fn files(&self) -> Files {
        Files { database: FileId::at(&self.path), log: FileId::at(&self.log), index: FileId::at(&self.index) }
    }

    /// Also requires that the database exists.
    pub(crate) fn still_has(&self, before: &Files) -> bool {
        let now = self.files().database;
        now.is_some() && now == before.database
    }

    /// `None`: a new connection has checked the file since.
    pub(crate) fn unchecked(&self) -> Option<Written> {
        let file = fs::metadata(&self.path).ok()?;
        let written = (file.modified().ok()?, file.len());
        let checked = *self.checked.lock().unwrap_or_else(PoisonError::into_inner);
        (checked != Some(written)).then_some(written)
    }

    /// A new connection has found a valid database.
    pub(crate) fn set_checked(&self, written: Written) {
        *self.checked.lock().unwrap_or_else(PoisonError::into_inner) = Some(written);
    }

    /// This process has the files open.
    pub(crate) fn remember(&self, files: Option<Files>) {
        *self.open.lock().unwrap_or_else(PoisonError::into_inner) = files;
    }

    /// SQLite would mix a replaced database with the old log.
    pub(crate) fn check_not_mixed(&self) -> Result<(), StateError> {
        let open = *self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.is_some_and(|open| open.are_mixed_with(&self.files())) {
            let what = "is another file than before, and the -wal and -shm beside it belong to the one before: remove these \
                two, then put the file there again";
            return Err(path_error(self, StateErrorKind::Damaged, what));
        }
        Ok(())
    }

    /// `None`: the database exists.
    ///
    /// SQLite itself needs no such right. But a process that has a deleted database open also has
    /// its index open, which the new database must not use, and only one process may remove it.
    pub(crate) fn begin_to_make(&self, timeout: &LockTimeout) -> Result<Option<Making<'_>>, StateError> {
        #[cfg(unix)]
        let lock = self.lock_directory(timeout)?;
        #[cfg(not(unix))]
        let _ = timeout;
        if self.is_there()? {
            return Ok(None);
        }
        for left_over in [&self.log, &self.index] {
            match fs::remove_file(left_over) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(cannot("remove what is left of", left_over, error));
                }
                _ => {}
            }
        }
        // SQLite would remove the write permission of others, whatever the umask. If the file
        // cannot be created here, SQLite creates it.
        let _ = create(&self.path);
        Ok(Some(Making {
            location: self,
            #[cfg(unix)]
            _lock: lock,
        }))
    }

    #[cfg(unix)]
    fn lock_directory(&self, timeout: &LockTimeout) -> Result<fs::File, StateError> {
        let failed = |error| cannot("make", &self.path, error);
        let directory = fs::File::open(self.directory()).map_err(failed)?;
        match timeout.until_free(|locked| matches!(locked, Ok(false)), || try_lock(&directory)) {
            Ok(true) => Ok(directory),
            Err(error) => Err(failed(error)),
            Ok(false) => {
                let timeout = self.lock_timeout;
                let text = format!("is being made by another process for {timeout:?}: find it and end it");
                Err(path_error(self, StateErrorKind::Unreachable, &text))
            }
        }
    }
}

/// Held until dropped.
#[derive(Debug)]
pub(crate) struct Making<'a> {
    location: &'a Location,
    #[cfg(unix)]
    _lock: fs::File,
}

impl Making<'_> {
    /// For a new database that could not be used. It must be closed.
    pub(crate) fn undo(self) {
        let location = self.location;
        let length = |path| fs::metadata(path).map_or(0, |file| file.len());
        // Neither the file nor the log contains any data.
        if length(&location.path) <= PAGE_BYTES && length(&location.log) == 0 {
            for made in [&location.path, &location.log, &location.index] {
                let _ = fs::remove_file(made);
            }
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Files {
    pub(crate) database: Option<FileId>,
    log: Option<FileId>,
    index: Option<FileId>,
}

impl Files {
    pub(crate) fn have_another_log(&self, before: &Files) -> bool {
        self.log.is_some() && self.log != before.log
    }

    /// Another database is next to the log or the index of this one.
    pub(crate) fn are_mixed_with(&self, now: &Files) -> bool {
        let still_there = |before: &Option<FileId>, now| before.is_some() && before == now;
        now.database.is_some()
            && now.database != self.database
            && (still_there(&self.log, &now.log) || still_there(&self.index, &now.index))
    }
}
