//! Options of a directory, and opening it.

use std::{path::PathBuf, time::Duration};

use interval_queue_contract::{InvalidInput, StateError};
use interval_queue_json_file::{Clock, Fsync};
use interval_queue_store::Url;

use super::DirectoryStore;

/// Options of a [`DirectoryStore`], from [`DirectoryStore::builder`] or a URL.
#[derive(Clone, Debug)]
#[must_use = "nothing is opened before `open`"]
pub struct Builder {
    pub(crate) path: PathBuf,
    pub(crate) fsync: Fsync,
    /// `None`: chosen by the file system of the directory.
    pub(crate) clock: Option<Clock>,
    pub(crate) lock_timeout: Duration,
    pub(crate) as_remote: bool,
}

impl Builder {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self {
            path,
            fsync: Fsync::default(),
            clock: None,
            lock_timeout: Duration::from_secs(5),
            as_remote: false,
        }
    }

    /// Reads `dir:PATH` with the parameters `fsync` (`never` or `always`), `clock` (`host` or
    /// `server`) and `lock_timeout`.
    ///
    /// # Errors
    ///
    /// There is no path, or a parameter is unknown or cannot be used.
    pub fn from_url(mut url: Url) -> Result<Self, InvalidInput> {
        let mut builder = Self::new(url.path("dir:PATH, as in dir:jobs")?.into());
        let fsyncs = [("never", Fsync::Never), ("always", Fsync::Always)];
        builder.fsync = url.choice("fsync", &fsyncs)?.unwrap_or(builder.fsync);
        let clocks = [("host", Clock::Host), ("server", Clock::FileServer)];
        builder.clock = url.choice("clock", &clocks)?;
        builder.lock_timeout = url.duration("lock_timeout")?.unwrap_or(builder.lock_timeout);
        url.finish()?;
        Ok(builder)
    }

    /// Whether a command is flushed to disk before it is answered. Default: [`Fsync::Never`].
    pub fn fsync(mut self, fsync: Fsync) -> Self {
        self.fsync = fsync;
        self
    }

    /// The clock that decides. All processes that share the directory must choose the same.
    /// Default: [`Clock::FileServer`] on a network mount where the system reports one (Linux does),
    /// [`Clock::Host`] elsewhere.
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = Some(clock);
        self
    }

    /// Time that a command waits for the lock of another process before it fails as
    /// [`Unreachable`](interval_queue_contract::StateErrorKind::Unreachable). Default: 5 s.
    pub fn lock_timeout(mut self, timeout: Duration) -> Self {
        self.lock_timeout = timeout;
        self
    }

    /// Treats the directory as a network mount, for tests.
    #[doc(hidden)]
    pub fn as_remote(mut self) -> Self {
        self.as_remote = true;
        self
    }

    /// Resolves the directory and checks it. Its parent must exist. An existing directory must be
    /// empty or belong to this software. Nothing is created.
    ///
    /// # Errors
    ///
    /// Each error names the path and the way out.
    ///
    /// | kind | why |
    /// |---|---|
    /// | `NotFound` | the parent directory is missing |
    /// | `Invalid` | the path names something other than a directory |
    /// | `Foreign` | the directory has other files |
    /// | `NewerVersion` | a newer version of this software created the directory |
    /// | `Unsupported` | a version before the first release created the directory |
    /// | `Denied` | no right to write to the directory |
    /// | `Unreachable` | the file system failed |
    ///
    /// # Cancel safety
    ///
    /// Dropping the future changes nothing.
    pub async fn open(self) -> Result<DirectoryStore, StateError> {
        DirectoryStore::find(self).await
    }
}
