//! The options of a directory, and the step that opens it.

use std::{path::PathBuf, time::Duration};

use interval_queue_contract::{InvalidInput, StateError};
use interval_queue_json_file::{Clock, Fsync};
use interval_queue_store::Url;

use super::DirectoryStore;

/// How a [`DirectoryStore`] is opened. Made by [`DirectoryStore::builder`] or from a URL.
#[derive(Clone, Debug)]
#[must_use = "nothing is opened before `open`"]
pub struct Builder {
    pub(crate) path: PathBuf,
    pub(crate) fsync: Fsync,
    /// None: as the place asks for.
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

    /// What `dir:PATH` says, with the parameters `fsync` (`never` or `always`), `clock` (`host` or `server`) and
    /// `lock_timeout`.
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

    /// Whether a command is flushed to the disk before it is answered. Default: [`Fsync::Never`].
    pub fn fsync(mut self, fsync: Fsync) -> Self {
        self.fsync = fsync;
        self
    }

    /// Whose clock decides; all processes that share the directory must choose the same. Default:
    /// [`Clock::FileServer`] on a network mount, as far as the system tells (Linux does), [`Clock::Host`]
    /// elsewhere.
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = Some(clock);
        self
    }

    /// How long a command waits for another process to give the lock back, before it ends as
    /// [`Unreachable`](interval_queue_contract::StateErrorKind::Unreachable). Default: 5 s.
    pub fn lock_timeout(mut self, timeout: Duration) -> Self {
        self.lock_timeout = timeout;
        self
    }

    /// Treats the place as a network mount, for tests.
    #[doc(hidden)]
    pub fn as_remote(mut self) -> Self {
        self.as_remote = true;
        self
    }

    /// Finds the directory, which need not be there, in one that must be. If it is there, it must be one of this
    /// software, or empty. Nothing is made.
    ///
    /// # Errors
    ///
    /// Each names the path and the way out.
    ///
    /// | kind | why |
    /// |---|---|
    /// | `NotFound` | the directory that it is to be in is missing |
    /// | `Invalid` | the path names a file or anything else than a directory |
    /// | `Foreign` | it has other files |
    /// | `NewerVersion` | a newer version of this software has made it |
    /// | `Unsupported` | a version before the first release has made it |
    /// | `Denied` | no right to write to it |
    /// | `Unreachable` | the file system failed |
    ///
    /// # Cancel safety
    ///
    /// It changes nothing.
    pub async fn open(self) -> Result<DirectoryStore, StateError> {
        DirectoryStore::find(self).await
    }
}
