//! Where the database is, which files have its name now, and who may make it.

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

use super::{Builder, Durability, error::told};

/// A database of more than one page of the usual size has a table.
const ONE_PAGE: u64 = 4096;
/// SQLite's own busy handler waits in steps of up to 100 ms, and is not asked in every case.
const LONGEST_PAUSE: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(10));

/// What never changes once a state is open.
#[derive(Debug)]
pub(crate) struct Location {
    path: PathBuf,
    log: PathBuf,
    index: PathBuf,
    durability: Durability,
    lock_timeout: Duration,
    /// Those that this process has open.
    open: Mutex<Option<Files>>,
    /// When the file was written that a new connection found to be a database, and how long it was.
    checked: Mutex<Option<Written>>,
}

/// When a file was written last, and its length.
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

    /// That of a command that begins now.
    pub(crate) fn patience(&self) -> LockTimeout {
        LockTimeout::begin(self.lock_timeout, LONGEST_PAUSE)
    }

    /// Whether there is a database, in a directory that must be there.
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

    /// Whether this user may store something in the database, or make it.
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

    /// Whether processes can share a database here.
    pub(crate) fn check_mount(&self) -> Result<(), StateError> {
        check_mount(&self.path)
    }

    /// The files that have the names of the database and its companions now.
    ///
    /// They are looked at and never opened: to close a file takes away the locks that SQLite has on it in
    /// this process.
    pub(crate) fn files(&self) -> Files {
        Files { database: FileId::at(&self.path), log: FileId::at(&self.log), index: FileId::at(&self.index) }
    }

    /// Whether the database is there, and the same file as it was then.
    pub(crate) fn still_has(&self, before: &Files) -> bool {
        let now = self.files().database;
        now.is_some() && now == before.database
    }

    /// When the database file was written, if no new connection has looked at it since.
    pub(crate) fn unchecked(&self) -> Option<Written> {
        let file = fs::metadata(&self.path).ok()?;
        let written = (file.modified().ok()?, file.len());
        let checked = *self.checked.lock().unwrap_or_else(PoisonError::into_inner);
        (checked != Some(written)).then_some(written)
    }

    /// A connection that was opened since has found a database.
    pub(crate) fn set_checked(&self, written: Written) {
        *self.checked.lock().unwrap_or_else(PoisonError::into_inner) = Some(written);
    }

    /// Takes down which files this process has open.
    pub(crate) fn remember(&self, files: Option<Files>) {
        *self.open.lock().unwrap_or_else(PoisonError::into_inner) = files;
    }

    /// Refuses another database beside which the log of the one before lies: SQLite would read them as a
    /// mixture of both.
    pub(crate) fn check_not_mixed(&self) -> Result<(), StateError> {
        let open = *self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.is_some_and(|open| open.are_mixed_with(&self.files())) {
            let what = "is another file than before, and the -wal and -shm beside it belong to the one before: remove these \
                two, then put the file there again";
            return Err(told(self, StateErrorKind::Damaged, what));
        }
        Ok(())
    }

    /// Gives the right to make the database, if it is not there. None if it is.
    ///
    /// SQLite by itself needs nobody's leave. But whoever has a deleted database still open has the index of
    /// its log open, too; a new database must not be given that, and only one may take it away.
    pub(crate) fn begin_to_make(&self, patience: &LockTimeout) -> Result<Option<Making<'_>>, StateError> {
        #[cfg(unix)]
        let lock = self.lock_directory(patience)?;
        #[cfg(not(unix))]
        let _ = patience;
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
        // SQLite would take away the right of others to write, whatever the umask. A file system that cannot do it leaves
        // it to SQLite.
        let _ = create(&self.path);
        Ok(Some(Making {
            location: self,
            #[cfg(unix)]
            _lock: lock,
        }))
    }

    #[cfg(unix)]
    fn lock_directory(&self, patience: &LockTimeout) -> Result<fs::File, StateError> {
        let failed = |error| cannot("make", &self.path, error);
        let directory = fs::File::open(self.directory()).map_err(failed)?;
        match patience.until_free(|locked| matches!(locked, Ok(false)), || try_lock(&directory)) {
            Ok(true) => Ok(directory),
            Err(error) => Err(failed(error)),
            Ok(false) => {
                let timeout = self.lock_timeout;
                let text = format!("is being made by another process for {timeout:?}: find it and end it");
                Err(told(self, StateErrorKind::Unreachable, &text))
            }
        }
    }
}

/// The right to make the database, until this is dropped.
#[derive(Debug)]
pub(crate) struct Making<'a> {
    location: &'a Location,
    #[cfg(unix)]
    _lock: fs::File,
}

impl Making<'_> {
    /// Takes away a database that was begun and could not be used. It must not be open any more.
    pub(crate) fn undo(self) {
        let location = self.location;
        let length = |path| fs::metadata(path).map_or(0, |file| file.len());
        // Nobody has stored anything in it, in the file or in the log.
        if length(&location.path) <= ONE_PAGE && length(&location.log) == 0 {
            for made in [&location.path, &location.log, &location.index] {
                let _ = fs::remove_file(made);
            }
        }
    }
}

/// Which files have the names of a database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Files {
    pub(crate) database: Option<FileId>,
    log: Option<FileId>,
    index: Option<FileId>,
}

impl Files {
    /// Whether a log is there now, and not that of `before`.
    pub(crate) fn have_another_log(&self, before: &Files) -> bool {
        self.log.is_some() && self.log != before.log
    }

    /// Whether `now` is another database beside which the companions of this one still lie.
    pub(crate) fn are_mixed_with(&self, now: &Files) -> bool {
        let still_there = |before: &Option<FileId>, now| before.is_some() && before == now;
        now.database.is_some()
            && now.database != self.database
            && (still_there(&self.log, &now.log) || still_there(&self.index, &now.index))
    }
}
