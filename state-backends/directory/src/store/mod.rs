//! A directory as a store, whatever its content except for the rate limits: its location, mark and
//! files.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use interval_queue_contract::StateError;
use interval_queue_json_file::JsonFileStore;
use interval_queue_store::files::blocking;

mod builder;
mod faults;
pub(crate) mod files;
mod location;

pub use self::builder::Builder;
pub(crate) use self::{faults::Faults, files::Files, location::Location};

/// One directory that processes share. A clone is another handle to the same directory.
#[derive(Clone)]
pub struct DirectoryStore {
    pub(crate) location: Arc<Location>,
}

impl DirectoryStore {
    /// Begins to open the directory at `path`. The directory need not exist; its parent must.
    pub fn builder(path: impl Into<PathBuf>) -> Builder {
        Builder::new(path.into())
    }

    /// The path of the directory: absolute and without symbolic links.
    pub fn path(&self) -> &Path {
        self.location.path()
    }

    async fn find(options: Builder) -> Result<Self, StateError> {
        blocking(move || Ok(Self { location: Arc::new(Location::find(options)?) })).await
    }

    /// Opens the file that has the rate limits of the queues. Creates the directory if it is
    /// missing.
    ///
    /// # Errors
    ///
    /// The directory cannot be created or used.
    ///
    /// # Cancel safety
    ///
    /// A dropped future may leave a directory without tasks.
    pub async fn pace(&self) -> Result<JsonFileStore, StateError> {
        let location = self.location.clone();
        blocking(move || location.make()).await?;
        let options = self.location.options();
        let builder = JsonFileStore::builder(self.path().join("pace.json"));
        builder
            .fsync(options.fsync)
            .clock(self.location.clock())
            .lock_timeout(options.lock_timeout)
            .open()
            .await
    }

    /// Dies before this file operation, counted from now, for tests.
    #[doc(hidden)]
    pub fn die_before(&self, operation: i64) {
        self.location.files().faults.die_before(operation);
    }

    /// File operations left until the store dies, for tests.
    #[doc(hidden)]
    pub fn operations_left(&self) -> i64 {
        self.location.files().faults.left()
    }

    /// Fails at this file operation, counted from now, for tests.
    #[doc(hidden)]
    pub fn fail_at(&self, operation: i64) {
        self.location.files().faults.fail_at(operation);
    }

    /// Whether the operation of `fail_at` is still to come.
    #[doc(hidden)]
    pub fn is_to_fail(&self) -> bool {
        self.location.files().faults.is_to_fail()
    }

    /// Whether the store has died by `die_before`.
    #[doc(hidden)]
    pub fn is_dead(&self) -> bool {
        self.location.files().faults.is_dead()
    }
}

impl fmt::Debug for DirectoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DirectoryStore").field("path", &self.path()).finish_non_exhaustive()
    }
}
