//! A text file as a store: path, lock, clock, replacement, watching. The text is not interpreted
//! here.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use interval_queue_contract::StateError;
use interval_queue_store::files::blocking;
use tokio::sync::Mutex;

mod builder;
mod clock;
mod file;
#[cfg_attr(not(target_os = "linux"), path = "never_in_place.rs")]
mod in_place;
#[cfg(all(test, target_os = "linux"))]
#[path = "../../tests/unit/killed.rs"]
mod killed;
mod latency;
mod location;
mod lock;
mod open;
#[cfg(feature = "watch")]
mod watch;

pub use self::lock::{Held, LockFile, TryLock, lock_wait};
pub(crate) use self::open::Change;
pub use self::{
    builder::{Builder, Fsync, Replacement},
    clock::Clock,
};
use self::{location::Location, open::Open};

/// A text file that processes share. A clone is a handle to the same open file.
#[derive(Clone)]
pub struct JsonFileStore {
    location: Arc<Location>,
    /// Threads of this process share the descriptor and so the file's lock. Async: waiting commands
    /// occupy no thread.
    open: Arc<Mutex<Open>>,
    #[cfg(feature = "watch")]
    watchers: Arc<watch::Watchers>,
}

impl JsonFileStore {
    /// Starts to open the file at `path`, which may be missing. Its directory must exist.
    pub fn builder(path: impl Into<PathBuf>) -> Builder {
        Builder::new(path.into())
    }

    /// The file's absolute path without symbolic links.
    pub fn path(&self) -> &Path {
        self.location.path()
    }

    fn at(location: Location) -> Self {
        Self {
            open: Arc::new(Mutex::new(Open::new(&location))),
            location: Arc::new(location),
            #[cfg(feature = "watch")]
            watchers: Arc::default(),
        }
    }

    /// Checks the text, then probes that the lock excludes.
    pub(crate) async fn prepare(
        &self,
        check: impl Fn(&Path, Option<&[u8]>) -> Result<(), StateError> + Send + 'static,
    ) -> Result<(), StateError> {
        let (location, wait) = (self.location.clone(), self.location.lock_wait());
        let mut open = self.open.clone().lock_owned().await;
        blocking(move || {
            location.check(check)?;
            open.lock.probe(wait)
        })
        .await
    }

    /// Reads then need the lock, because they read the clock of the file's server.
    pub(crate) fn stamps(&self) -> bool {
        self.location.clock() == Clock::FileServer
    }

    /// Once begun, it completes.
    pub(crate) async fn change<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Change<'_>) -> Result<T, StateError> + Send + 'static,
    ) -> Result<T, StateError> {
        // Includes the wait for this process's commands, so that queued commands share one timeout.
        let wait = self.location.lock_wait();
        let mut open = self.open.clone().lock_owned().await;
        if open.is_probably_quick() {
            let Open { lock, stored } = &mut *open;
            if let Some(held) = lock.acquire_at_once() {
                return stored.carry_out(&held, work);
            }
        }
        blocking(move || {
            let Open { lock, stored } = &mut *open;
            stored.carry_out(&lock.acquire(wait)?, work)
        })
        .await
    }

    pub(crate) async fn query<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Path, Option<&[u8]>) -> Result<T, StateError> + Send + 'static,
    ) -> Result<T, StateError> {
        let location = self.location.clone();
        blocking(move || location.query(read)).await
    }

    /// Notifies when `revision` changes.
    #[cfg(feature = "watch")]
    pub(crate) async fn watch(
        &self,
        revision: impl watch::RevisionReader,
    ) -> Result<futures::stream::BoxStream<'static, ()>, StateError> {
        let (location, watchers) = (self.location.clone(), self.watchers.clone());
        blocking(move || watchers.watch(&location, revision)).await
    }
}

impl fmt::Debug for JsonFileStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JsonFileStore").field("location", &self.location).finish_non_exhaustive()
    }
}
