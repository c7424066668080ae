//! The lock that keeps processes apart. No other module locks a file.
//!
//! It is a file of its own, never renamed and never deleted: the state file is replaced with every command,
//! and a lock on a file that was replaced excludes nobody.

use std::{
    fmt,
    fs::{self, File, Metadata, OpenOptions},
    hash::{BuildHasher, RandomState},
    io,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use fs4::FileExt;
use interval_queue_contract::{StateError, StateErrorKind};

use crate::error::cannot;

/// Tries before the first pause: most commands hold the lock for less than a pause lasts.
const QUICK_TRIES: u32 = 3;
/// The first pause; each further one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_micros(50);
/// No pause is longer, so that a lock given back is soon noticed.
const LONGEST_PAUSE: Duration = Duration::from_micros(500);

/// How an open file is locked. A trait, so that a test can have a mount whose lock does nothing.
pub(crate) trait Exclusion: fmt::Debug + Send + Sync {
    /// Takes the lock, or says that another descriptor has it.
    fn try_lock(&self, file: &File) -> io::Result<bool>;
    /// Gives it back.
    fn unlock(&self, file: &File) -> io::Result<()>;
}

/// The operating system's lock on a whole file, which belongs to the descriptor and ends with the process.
#[derive(Debug)]
pub(crate) struct Flock;

impl Exclusion for Flock {
    fn try_lock(&self, file: &File) -> io::Result<bool> {
        match FileExt::try_lock(file) {
            Ok(()) => Ok(true),
            Err(fs4::TryLockError::WouldBlock) => Ok(false),
            Err(fs4::TryLockError::Error(error)) if error.kind() == io::ErrorKind::Interrupted => Ok(false),
            Err(fs4::TryLockError::Error(error)) => Err(error),
        }
    }

    fn unlock(&self, file: &File) -> io::Result<()> {
        FileExt::unlock(file)
    }
}

/// The lock file, kept open between commands.
#[derive(Debug)]
pub(crate) struct LockFile {
    path: PathBuf,
    exclusion: &'static dyn Exclusion,
    open: Option<Lock>,
}

/// An open lock file, and which one it is.
#[derive(Debug)]
struct Lock {
    file: File,
    identity: Identity,
}

impl LockFile {
    pub(crate) fn new(path: PathBuf, exclusion: &'static dyn Exclusion) -> Self {
        Self { path, exclusion, open: None }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Takes the lock if the file is open and nobody has it: waits for nothing.
    pub(crate) fn acquire_at_once(&mut self) -> Option<Held<'_>> {
        let lock = self.open.take()?;
        match self.exclusion.try_lock(&lock.file) {
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

    /// Takes the lock, opening or creating the file if need be. `patience` began when the command came.
    pub(crate) fn acquire(&mut self, patience: Patience) -> Result<Held<'_>, StateError> {
        loop {
            let (lock, fresh) = match self.open.take() {
                Some(lock) => (lock, false),
                None => (Lock::open(&self.path)?, true),
            };
            match wait_for(self.exclusion, &lock.file, &patience) {
                // Somebody may have deleted or replaced the lock file: those who come now lock another one.
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
                        patience.limit
                    )));
                }
                Err(error) if fresh => return Err(unlockable(&self.path, error)),
                // A file server may have forgotten the file since it was opened.
                Err(_) => {}
            }
            if patience.is_over() {
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
pub(crate) struct Held<'a>(&'a mut LockFile);

impl Held<'_> {
    /// The locked file.
    pub(crate) fn file(&self) -> io::Result<&File> {
        self.0.open.as_ref().map(|lock| &lock.file).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Its path.
    pub(crate) fn path(&self) -> &Path {
        &self.0.path
    }

    /// Whether a second descriptor is kept out, which is what a lock is for.
    pub(crate) fn excludes(&self) -> Result<bool, StateError> {
        let path = &self.0.path;
        let second = Lock::open(path)?;
        let taken = self.0.exclusion.try_lock(&second.file).map_err(|error| unlockable(path, error))?;
        // If the file was replaced just now, the second descriptor locks another one and proves nothing.
        let same = self.0.open.as_ref().is_some_and(|first| first.is_at(path) && second.is_at(path));
        Ok(!(taken && same))
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let unlocked = self.0.open.as_ref().map(|lock| self.0.exclusion.unlock(&lock.file));
        // Closing gives the lock back where unlocking fails.
        if !matches!(unlocked, Some(Ok(()))) {
            self.0.open = None;
        }
    }
}

/// How long a command has been waiting, and how long it may.
#[derive(Debug)]
pub(crate) struct Patience {
    begun: Instant,
    limit: Duration,
}

impl Patience {
    #[allow(
        clippy::disallowed_methods,
        reason = "measures how long a command waits, never an instant of the state"
    )]
    pub(crate) fn begin(limit: Duration) -> Self {
        Self { begun: Instant::now(), limit }
    }

    fn is_over(&self) -> bool {
        self.begun.elapsed() >= self.limit
    }
}

/// Tries until the lock is there, or patience is over: `false`. Blocking locks can wait far longer than they
/// need to under contention, and know no time-out.
fn wait_for(exclusion: &dyn Exclusion, file: &File, patience: &Patience) -> io::Result<bool> {
    for _ in 0..QUICK_TRIES {
        if exclusion.try_lock(file)? {
            return Ok(true);
        }
        thread::yield_now();
    }
    let mut pause = FIRST_PAUSE;
    while !patience.is_over() {
        thread::sleep(jittered(pause));
        if exclusion.try_lock(file)? {
            return Ok(true);
        }
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
    Ok(false)
}

/// Between half of `pause` and all of it, so that those who wait do not come back together.
fn jittered(pause: Duration) -> Duration {
    let random = RandomState::new().hash_one(()) % 512;
    pause * (512 + random as u32) / 1024
}

impl Lock {
    fn open(path: &Path) -> Result<Self, StateError> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let file = options.open(path).map_err(|error| cannot("open the lock file", path, error))?;
        let metadata = file.metadata().map_err(|error| cannot("look at the lock file", path, error))?;
        // The clock of a file server is read by writing one byte. Nobody else's file may suffer from that.
        if !metadata.is_file() || metadata.len() > 1 {
            return Err(StateError::new(
                StateErrorKind::Foreign,
                format!(
                    "{} is not the lock of an interval queue, which is an empty file: choose another name for the state",
                    path.display()
                ),
            ));
        }
        Ok(Self { identity: Identity::of(&metadata), file })
    }

    /// Whether this is the file that has that path now.
    fn is_at(&self, path: &Path) -> bool {
        fs::metadata(path).is_ok_and(|named| Identity::of(&named) == self.identity)
    }
}

fn unlockable(path: &Path, error: io::Error) -> StateError {
    let kind = match error.kind() {
        io::ErrorKind::PermissionDenied => return cannot("lock", path, error),
        io::ErrorKind::Unsupported => StateErrorKind::Unsupported,
        // Among them what a lock service says that is not there, or not yet again.
        _ => StateErrorKind::Unreachable,
    };
    let text = format!(
        "{} cannot be locked: use a local disk, a mount with a lock service such as NFSv4, or Redis",
        path.display()
    );
    StateError::new(kind, text).with_source(error)
}

/// What tells one file from another.
#[cfg(unix)]
#[derive(Debug, PartialEq, Eq)]
struct Identity {
    device: u64,
    inode: u64,
}

#[cfg(unix)]
impl Identity {
    fn of(metadata: &Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        Self { device: metadata.dev(), inode: metadata.ino() }
    }
}

/// Elsewhere the standard library does not tell files apart; nobody can delete an open one by accident there.
#[cfg(not(unix))]
#[derive(Debug, PartialEq, Eq)]
struct Identity;

#[cfg(not(unix))]
impl Identity {
    fn of(_: &Metadata) -> Self {
        Self
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::{
        os::unix::fs::MetadataExt,
        sync::atomic::{AtomicU64, Ordering},
    };

    use super::*;

    /// A file server that does not know one file any more.
    #[derive(Debug)]
    struct Forgets(AtomicU64);

    impl Exclusion for Forgets {
        fn try_lock(&self, file: &File) -> io::Result<bool> {
            if file.metadata()?.ino() == self.0.load(Ordering::Relaxed) {
                return Err(io::ErrorKind::StaleNetworkFileHandle.into());
            }
            Flock.try_lock(file)
        }
        fn unlock(&self, file: &File) -> io::Result<()> {
            Flock.unlock(file)
        }
    }

    #[test]
    fn a_descriptor_that_the_server_forgot_is_opened_again() {
        static SERVER: Forgets = Forgets(AtomicU64::new(0));
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state.json.lock");
        let mut lock = LockFile::new(path.clone(), &SERVER);
        let ino = lock
            .acquire(Patience::begin(Duration::from_secs(5)))
            .unwrap()
            .file()
            .unwrap()
            .metadata()
            .unwrap()
            .ino();
        std::fs::rename(&path, directory.path().join("old")).unwrap();
        SERVER.0.store(ino, Ordering::Relaxed);
        lock.acquire(Patience::begin(Duration::from_secs(5))).unwrap();

        // Where a freshly opened one is no better: an error, not an endless loop.
        std::fs::rename(directory.path().join("old"), &path).unwrap();
        let error = lock.acquire(Patience::begin(Duration::from_secs(5))).unwrap_err();
        assert_eq!(error.kind(), StateErrorKind::Unreachable);
        SERVER.0.store(0, Ordering::Relaxed);
        lock.acquire(Patience::begin(Duration::from_secs(5))).unwrap();
    }

    #[test]
    fn pauses_differ_but_never_exceed_their_length() {
        let pauses: std::collections::BTreeSet<_> = (0..100).map(|_| jittered(LONGEST_PAUSE)).collect();
        assert!(pauses.len() > 10, "{pauses:?}");
        assert!(
            pauses.iter().all(|pause| *pause <= LONGEST_PAUSE && *pause >= LONGEST_PAUSE / 2),
            "{pauses:?}"
        );
    }
}
