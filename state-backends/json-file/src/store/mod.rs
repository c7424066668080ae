//! A text file as a store: where it is, its lock and its clock, one change of its text, and how it is
//! watched. What the text says, the store does not know.

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

pub use self::lock::{Held, LockFile, TryLock, patience};
pub(crate) use self::open::Change;
pub use self::{
    builder::{Builder, Fsync, Replacement},
    clock::Clock,
};
use self::{location::Location, open::Open};

/// One text file that processes share. A clone is another handle to the same open file.
#[derive(Clone)]
pub struct JsonFileStore {
    location: Arc<Location>,
    /// Keeps the threads of this process apart, which share the descriptor and with it the file's lock. An
    /// async one, so that commands that wait for each other occupy no thread.
    open: Arc<Mutex<Open>>,
    #[cfg(feature = "watch")]
    watchers: Arc<watch::Watchers>,
}

impl JsonFileStore {
    /// Begins to open the file at `path`, which need not be there, in a directory that must be.
    pub fn builder(path: impl Into<PathBuf>) -> Builder {
        Builder::new(path.into())
    }

    /// Where the file really is: absolute and without symbolic links.
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

    /// Checks what is stored. If that can be used it creates the lock file and probes that it excludes.
    pub(crate) async fn prepare(
        &self,
        check: impl Fn(&Path, Option<&[u8]>) -> Result<(), StateError> + Send + 'static,
    ) -> Result<(), StateError> {
        let (location, patience) = (self.location.clone(), self.location.patience());
        let mut open = self.open.clone().lock_owned().await;
        blocking(move || {
            location.check(check)?;
            open.lock.probe(patience)
        })
        .await
    }

    /// Whether a look, too, has to hold the lock, as it reads the clock of the file's server.
    pub(crate) fn stamps(&self) -> bool {
        self.location.clock() == Clock::FileServer
    }

    /// Does what may change the text, under the lock. Once begun it is carried through.
    pub(crate) async fn change<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Change<'_>) -> Result<T, StateError> + Send + 'static,
    ) -> Result<T, StateError> {
        // The wait for commands of this process counts too, so that a queue of them does not wait one
        // time-out each.
        let patience = self.location.patience();
        let mut open = self.open.clone().lock_owned().await;
        if open.is_swift() {
            let Open { lock, stored } = &mut *open;
            if let Some(held) = lock.acquire_at_once() {
                return stored.carry_out(&held, work);
            }
        }
        blocking(move || {
            let Open { lock, stored } = &mut *open;
            stored.carry_out(&lock.acquire(patience)?, work)
        })
        .await
    }

    /// Looks at the text, if there is one.
    pub(crate) async fn look<T: Send + 'static>(
        &self,
        look: impl FnOnce(&Path, Option<&[u8]>) -> Result<T, StateError> + Send + 'static,
    ) -> Result<T, StateError> {
        let location = self.location.clone();
        blocking(move || location.look(look)).await
    }

    /// Tells whenever `revision` finds another number in the text.
    #[cfg(feature = "watch")]
    pub(crate) async fn watch(
        &self,
        revision: impl watch::Look,
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
