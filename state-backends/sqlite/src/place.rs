//! Where the database is, which files have its name now, and who may make it.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use interval_queue_contract::{StateError, StateErrorKind};

use crate::{
    Builder, Durability,
    error::{cannot, told},
    mount,
    path::{beside, resolve},
    patience::Patience,
};

/// A database of more than one page of the usual size has a table.
const ONE_PAGE: u64 = 4096;

/// What never changes once a state is open.
#[derive(Debug)]
pub(crate) struct Place {
    path: PathBuf,
    directory: PathBuf,
    log: PathBuf,
    index: PathBuf,
    durability: Durability,
    lock_timeout: Duration,
    /// Those that this process has open.
    open: Mutex<Option<Files>>,
}

impl Place {
    pub(crate) fn find(options: &Builder) -> Result<Self, StateError> {
        let path = resolve(&options.path)?;
        let directory = path.parent().unwrap_or(Path::new("/")).to_owned();
        Ok(Self {
            log: beside(&path, "-wal"),
            index: beside(&path, "-shm"),
            path,
            directory,
            durability: options.durability,
            lock_timeout: options.lock_timeout,
            open: Mutex::new(None),
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    pub(crate) fn durability(&self) -> Durability {
        self.durability
    }

    pub(crate) fn lock_timeout(&self) -> Duration {
        self.lock_timeout
    }

    /// That of a command that begins now.
    pub(crate) fn patience(&self) -> Patience {
        Patience::begin(self.lock_timeout)
    }

    /// Whether there is a database, in a directory that must be there.
    pub(crate) fn is_there(&self) -> Result<bool, StateError> {
        match fs::metadata(&self.path) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                fs::metadata(&self.directory).map(|_| false)
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
            access(&self.directory, Access::WRITE_OK | Access::EXEC_OK)
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
        mount::check(&self.path, &self.directory)
    }

    /// The files that have the names of the database and its companions now.
    ///
    /// They are looked at and never opened: to close a file takes away the locks that SQLite has on it in
    /// this process.
    pub(crate) fn files(&self) -> Files {
        Files {
            database: Identity::of(&self.path),
            log: Identity::of(&self.log),
            index: Identity::of(&self.index),
        }
    }

    /// Whether the database is there, and the same file as it was then.
    pub(crate) fn still_has(&self, before: &Files) -> bool {
        let now = self.files().database;
        now == before.database && (now.is_some() || !cfg!(unix))
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
    pub(crate) fn begin_to_make(&self, patience: &Patience) -> Result<Option<Making<'_>>, StateError> {
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
        Ok(Some(Making {
            place: self,
            #[cfg(unix)]
            _lock: lock,
        }))
    }

    #[cfg(unix)]
    fn lock_directory(&self, patience: &Patience) -> Result<fs::File, StateError> {
        let failed = |error| cannot("make", &self.path, error);
        let directory = fs::File::open(&self.directory).map_err(failed)?;
        match patience.until_some(|| match directory.try_lock() {
            Ok(()) => Some(Ok(())),
            Err(fs::TryLockError::WouldBlock) => None,
            Err(fs::TryLockError::Error(error)) => Some(Err(error)),
        }) {
            Some(locked) => locked.map(|()| directory).map_err(failed),
            None => {
                let text = format!(
                    "is being made by another process for {:?}: find it and end it",
                    self.lock_timeout
                );
                Err(told(self, StateErrorKind::Unreachable, &text))
            }
        }
    }
}

/// The right to make the database, until this is dropped.
#[derive(Debug)]
pub(crate) struct Making<'a> {
    place: &'a Place,
    #[cfg(unix)]
    _lock: fs::File,
}

impl Making<'_> {
    /// Takes away a database that was begun and could not be used. It must not be open any more.
    pub(crate) fn undo(self) {
        let place = self.place;
        let length = |path| fs::metadata(path).map_or(0, |file| file.len());
        // Nobody has stored anything in it, in the file or in the log.
        if length(&place.path) <= ONE_PAGE && length(&place.log) == 0 {
            for made in [&place.path, &place.log, &place.index] {
                let _ = fs::remove_file(made);
            }
        }
    }
}

/// Which files have the names of a database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Files {
    pub(crate) database: Option<Identity>,
    log: Option<Identity>,
    index: Option<Identity>,
}

impl Files {
    /// Whether a log is there now, and not that of `before`.
    pub(crate) fn have_another_log(&self, before: &Files) -> bool {
        self.log.is_some() && self.log != before.log
    }

    /// Whether `now` is another database beside which the companions of this one still lie.
    pub(crate) fn are_mixed_with(&self, now: &Files) -> bool {
        let still_there = |before: &Option<Identity>, now| before.is_some() && before == now;
        now.database.is_some()
            && now.database != self.database
            && (still_there(&self.log, &now.log) || still_there(&self.index, &now.index))
    }
}

/// What tells one file from another. Elsewhere than on Unix the standard library cannot tell, and nobody can
/// delete an open file by accident.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    #[cfg(unix)]
    device: u64,
    #[cfg(unix)]
    inode: u64,
}

impl Identity {
    #[cfg(unix)]
    fn of(path: &Path) -> Option<Self> {
        use std::os::unix::fs::MetadataExt;
        fs::metadata(path).ok().map(|file| Self { device: file.dev(), inode: file.ino() })
    }

    #[cfg(not(unix))]
    fn of(_: &Path) -> Option<Self> {
        None
    }
}
