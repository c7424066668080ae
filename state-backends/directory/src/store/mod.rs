//! A directory as a store: where it is, what marks it as ours, and its files. What is kept in it, the store does not
//! know, but for the pace, which has a JSON file of its own.

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

/// One directory that processes share. A clone is another handle to the same one.
#[derive(Clone)]
pub struct DirectoryStore {
    pub(crate) location: Arc<Location>,
}

impl DirectoryStore {
    /// Begins to open the directory at `path`, which need not be there, in one that must be.
    pub fn builder(path: impl Into<PathBuf>) -> Builder {
        Builder::new(path.into())
    }

    /// Where the directory really is: absolute and without symbolic links.
    pub fn path(&self) -> &Path {
        self.location.path()
    }

    async fn find(options: Builder) -> Result<Self, StateError> {
        blocking(move || Ok(Self { location: Arc::new(Location::find(options)?) })).await
    }

    /// The file that has the pace of the queues. Makes the directory if it is not there.
    ///
    /// # Errors
    ///
    /// The directory cannot be made, or not be used.
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

    /// Dies before the operation on files with this number, counted from now, for tests.
    #[doc(hidden)]
    pub fn die_before(&self, operation: i64) {
        self.location.files().faults.die_before(operation);
    }

    /// How many operations on files are left until it dies, for tests.
    #[doc(hidden)]
    pub fn operations_left(&self) -> i64 {
        self.location.files().faults.left()
    }

    /// Fails at the operation on files with this number, counted from now, for tests.
    #[doc(hidden)]
    pub fn fail_at(&self, operation: i64) {
        self.location.files().faults.fail_at(operation);
    }

    /// Whether that operation is still to come.
    #[doc(hidden)]
    pub fn is_to_fail(&self) -> bool {
        self.location.files().faults.is_to_fail()
    }

    /// Whether it has died so.
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
