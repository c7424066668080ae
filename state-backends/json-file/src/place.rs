//! Where the state is, and a look at it by who changes nothing.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use interval_queue_contract::{StateError, StateErrorKind};

use crate::{
    Builder, Clock,
    document::Document,
    file::StateFile,
    lock::{Exclusion, LockFile, Patience},
    path::{beside, resolve},
};

/// A process that has the lock for longer is stopped or dead in all but name, as a rule between two system
/// calls: the file is whole.
const STUCK: Duration = Duration::from_millis(100);

/// What never changes once a state is open.
#[derive(Debug)]
pub(crate) struct Place {
    path: PathBuf,
    lock_path: PathBuf,
    lock_timeout: Duration,
    exclusion: &'static dyn Exclusion,
    clock: Clock,
}

impl Place {
    /// Finds the file and checks what is stored there. Creates nothing.
    pub(crate) fn find(options: &Builder, exclusion: &'static dyn Exclusion) -> Result<Self, StateError> {
        let path = resolve(&options.path)?;
        let place = Self {
            lock_path: beside(&path, ".lock"),
            path,
            lock_timeout: options.lock_timeout,
            exclusion,
            clock: options.clock,
        };
        let mut read = place.read(|_| Ok(()));
        // Somebody may overwrite the file just now; then there is a lock to look under.
        if read.is_err() && place.lock_path.exists() {
            read = place.look(|_| Ok(()));
        }
        read?;
        Ok(place)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn clock(&self) -> Clock {
        self.clock
    }

    /// The lock file, not opened yet.
    pub(crate) fn lock(&self) -> LockFile {
        LockFile::new(self.lock_path.clone(), self.exclusion)
    }

    /// That of a command that begins now.
    pub(crate) fn patience(&self) -> Patience {
        Patience::begin(self.lock_timeout)
    }

    /// Looks at what is stored: under the lock, or without it if it is not to be had.
    pub(crate) fn look<T>(
        &self,
        look: impl FnOnce(Document<'_>) -> Result<T, StateError>,
    ) -> Result<T, StateError> {
        let mut lock = self.lock();
        let held = lock.acquire(Patience::begin(self.lock_timeout.min(STUCK)));
        match (self.read(look), held) {
            // What is spoilt without the lock may be whole under it.
            (Err(error), Err(why_not_held)) if error.kind() == StateErrorKind::Damaged => Err(why_not_held),
            (result, _) => result,
        }
    }

    fn read<T>(&self, look: impl FnOnce(Document<'_>) -> Result<T, StateError>) -> Result<T, StateError> {
        let mut buffer = Vec::new();
        look(match StateFile::read_named(&self.path, &mut buffer)? {
            Some(bytes) => Document::parse(&self.path, bytes, None)?,
            None => Document::empty(),
        })
    }
}
