//! The lock between processes.
//!
//! A separate file, never renamed or deleted, because a lock on a replaced file is useless.

use std::{
    fs::{File, OpenOptions},
    io,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use interval_queue_contract::{StateError, StateErrorKind};
use interval_queue_store::files::{FileId, LockTimeout, cannot, lock};

/// Before the first pause: most commands hold the lock for less than a pause.
const MAX_QUICK_ATTEMPTS: u32 = 3;
/// Short, so that a released lock is noticed soon.
const MAX_PAUSE: Duration = Duration::from_micros(500);

/// Tries to lock an open file. `false`: another descriptor holds the lock. Tests inject one that
/// does nothing.
pub type TryLock = fn(&File) -> io::Result<bool>;

/// The lock file, kept open between commands.
#[derive(Debug)]
pub struct LockFile {
    path: PathBuf,
    try_lock: TryLock,
    open: Option<Lock>,
}

#[derive(Debug)]
struct Lock {
    file: File,
    identity: FileId,
}

impl LockFile {
    /// The lock file at `path`, not opened yet.
    pub fn new(path: PathBuf, try_lock: TryLock) -> Self {
        Self { path, try_lock, open: None }
    }

    /// Takes the lock and checks that it excludes a second descriptor.
    ///
    /// # Errors
    ///
    /// The lock does not exclude here, or it cannot be taken.
    pub fn probe(&mut self, wait: LockTimeout) -> Result<(), StateError> {
        if self.acquire(wait)?.excludes()? {
            return Ok(());
        }
        let path = self.path.display();
        let text = format!(
            "a lock on {path} does not exclude: use a local disk, mount with locks (NFSv4, without nolock and \
             local_lock), or use Redis"
        );
        Err(StateError::new(StateErrorKind::Unsupported, text))
    }

    /// Never waits or opens the file.
    pub(crate) fn acquire_at_once(&mut self) -> Option<Held<'_>> {
        let lock = self.open.take()?;
        match (self.try_lock)(&lock.file) {
            Ok(true) if lock.is_at(&self.path) => {
                self.open = Some(lock);
                Some(Held(self))
            }
            Ok(false) => {
                self.open = Some(lock);
                None
            }
            Ok(true) | Err(_) => None,
        }
    }

    /// Takes the lock; opens or creates the file if needed. `wait` began with the command.
    ///
    /// # Errors
    ///
    /// Another process held the lock for too long, or the file cannot be locked.
    pub fn acquire(&mut self, wait: LockTimeout) -> Result<Held<'_>, StateError> {
        loop {
            let (lock, fresh) = match self.open.take() {
                Some(lock) => (lock, false),
                None => (Lock::open(&self.path)?, true),
            };
            match wait_for(self.try_lock, &lock.file, &wait) {
                // Others lock the new file: open it.
                Ok(true) if lock.is_at(&self.path) => {
                    self.open = Some(lock);
                    return Ok(Held(self));
                }
                Ok(true) => {}
                Ok(false) => {
                    self.open = Some(lock);
                    return Err(unreachable(format!(
                        "another process has held {} for {:?}: find it, for example with fuser, and end it",
                        self.path.display(),
                        wait.limit()
                    )));
                }
                Err(error) if fresh => return Err(unlockable(&self.path, error)),
                // The file server may have forgotten the open file.
                Err(_) => {}
            }
            if wait.is_over() {
                return Err(unreachable(format!(
                    "{} is replaced all the time: leave it alone",
                    self.path.display()
                )));
            }
        }
    }
}

fn unreachable(text: String) -> StateError {
    StateError::new(StateErrorKind::Unreachable, text)
}

/// The lock, held until this is dropped.
#[derive(Debug)]
pub struct Held<'a>(&'a mut LockFile);

impl Held<'_> {
    pub(crate) fn file(&self) -> io::Result<&File> {
        self.0.open.as_ref().map(|lock| &lock.file).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0.path
    }

    /// Whether a second descriptor is excluded: on some mounts locking succeeds without effect.
    fn excludes(&self) -> Result<bool, StateError> {
        let path = &self.0.path;
        let second = Lock::open(path)?;
        let taken = (self.0.try_lock)(&second.file).map_err(|error| unlockable(path, error))?;
        // A file that was just replaced proves nothing.
        let same = self.0.open.as_ref().is_some_and(|first| first.is_at(path) && second.is_at(path));
        Ok(!(taken && same))
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let unlocked = self.0.open.as_ref().map(|open| lock::unlock(&open.file));
        // If unlocking fails, closing releases the lock.
        if !matches!(unlocked, Some(Ok(()))) {
            self.0.open = None;
        }
    }
}

/// The timeout of a command that begins now.
pub fn lock_wait(limit: Duration) -> LockTimeout {
    LockTimeout::begin(limit, (MAX_PAUSE, MAX_PAUSE))
}

/// `false`: `wait` is over. Blocking locks have no timeout and can wait far too long under
/// contention.
fn wait_for(try_lock: TryLock, file: &File, wait: &LockTimeout) -> io::Result<bool> {
    for _ in 0..MAX_QUICK_ATTEMPTS {
        if try_lock(file)? {
            return Ok(true);
        }
        thread::yield_now();
    }
    wait.until_free(|taken| matches!(taken, Ok(false)), || try_lock(file))
}

impl Lock {
    fn open(path: &Path) -> Result<Self, StateError> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let file = options.open(path).map_err(|error| cannot("open the lock file", path, error))?;
        let metadata = file.metadata().map_err(|error| cannot("look at the lock file", path, error))?;
        // `Clock::FileServer` writes a byte into the lock file, so it must not be someone else's.
        if !metadata.is_file() || metadata.len() > 1 {
            return Err(StateError::new(
                StateErrorKind::Foreign,
                format!(
                    "{} is not the lock of an interval queue, which is an empty file: choose another name for the state",
                    path.display()
                ),
            ));
        }
        Ok(Self { identity: FileId::of(&metadata), file })
    }

    fn is_at(&self, path: &Path) -> bool {
        FileId::at(path) == Some(self.identity)
    }
}

fn unlockable(path: &Path, error: io::Error) -> StateError {
    let kind = match error.kind() {
        io::ErrorKind::PermissionDenied => return cannot("lock", path, error),
        io::ErrorKind::Unsupported => StateErrorKind::Unsupported,
        // Includes the errors of a lock service that is missing or restarting.
        _ => StateErrorKind::Unreachable,
    };
    let text = format!(
        "{} cannot be locked: use a local disk, a mount with a lock service such as NFSv4, or Redis",
        path.display()
    );
    StateError::new(kind, text).with_source(error)
}

#[cfg(all(test, unix))]
#[path = "../../tests/unit/lock_unit.rs"]
mod tests;
