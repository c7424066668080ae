//! The options of a state file, and how it is opened.

use std::{path::PathBuf, time::Duration};

use interval_queue_contract::{InvalidInput, StateError};
use interval_queue_store::{
    Url,
    files::{blocking, lock::try_lock},
};

use super::{Clock, JsonFileStore, location::Location, lock::TryLock};

/// Options for opening a [`JsonFileStore`]: from [`JsonFileStore::builder`] or a URL.
#[derive(Clone, Debug)]
#[must_use = "nothing is opened before `open`"]
pub struct Builder {
    pub(crate) path: PathBuf,
    pub(crate) fsync: Fsync,
    pub(crate) replacement: Replacement,
    pub(crate) clock: Clock,
    pub(crate) lock_timeout: Duration,
}

/// Whether a new text is flushed to the disk before a command replies.
///
/// For costs see the [crate's documentation](crate#why-there-is-no-fsync-by-default).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Fsync {
    /// The operating system decides when to write. A killed process loses nothing. The default.
    #[default]
    Never,
    /// The new file is flushed before its rename, the directory after. No file is overwritten.
    Always,
}

/// How a new text replaces the old one. Processes that share a file may choose differently.
///
/// For conditions and safety see the [crate's documentation](crate#how-a-state-is-replaced).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Replacement {
    /// Overwrite the file where no killed process can damage it, which needs Linux, a local file
    /// system, [`Fsync::Never`] and [`Clock::Host`]; else [`Rename`](Self::Rename). The default,
    /// and many times as fast. The file may end with blanks.
    #[default]
    InPlace,
    /// Write `<file>.tmp`, then rename it over the file. Without the lock, readers such as `cat`
    /// see the old text or the new one, never a part of each.
    Rename,
}

impl Builder {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self {
            path,
            fsync: Fsync::default(),
            replacement: Replacement::default(),
            clock: Clock::default(),
            lock_timeout: Duration::from_secs(5),
        }
    }

    /// Parses `file:PATH` with the parameters `fsync` (`never` or `always`), `replacement`
    /// (`in-place` or `rename`), `clock` (`host` or `server`) and `lock_timeout`.
    ///
    /// # Errors
    ///
    /// The path is missing, or a parameter is unknown or invalid.
    pub fn from_url(mut url: Url) -> Result<Self, InvalidInput> {
        let mut builder = Self::new(url.path("file:PATH, as in file:pace.json")?.into());
        let fsyncs = [("never", Fsync::Never), ("always", Fsync::Always)];
        builder.fsync = url.choice("fsync", &fsyncs)?.unwrap_or(builder.fsync);
        let replacements = [("in-place", Replacement::InPlace), ("rename", Replacement::Rename)];
        builder.replacement = url.choice("replacement", &replacements)?.unwrap_or(builder.replacement);
        let clocks = [("host", Clock::Host), ("server", Clock::FileServer)];
        builder.clock = url.choice("clock", &clocks)?.unwrap_or(builder.clock);
        builder.lock_timeout = url.duration("lock_timeout")?.unwrap_or(builder.lock_timeout);
        url.finish()?;
        Ok(builder)
    }

    /// Whether a new text is flushed to the disk. Default: [`Fsync::Never`].
    pub fn fsync(mut self, fsync: Fsync) -> Self {
        self.fsync = fsync;
        self
    }

    /// How a new text replaces the old one. Default: [`Replacement::InPlace`].
    pub fn replacement(mut self, replacement: Replacement) -> Self {
        self.replacement = replacement;
        self
    }

    /// Whose clock decides; the same for all processes of the file. Default: [`Clock::Host`].
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Maximum wait for the lock; then the command fails as
    /// [`Unreachable`](interval_queue_contract::StateErrorKind::Unreachable). A healthy process
    /// holds the lock for a fraction of a millisecond. Default: 5 s.
    pub fn lock_timeout(mut self, timeout: Duration) -> Self {
        self.lock_timeout = timeout;
        self
    }

    /// Resolves the path. The file may be missing; its directory must exist. Creates nothing and
    /// does not read the file.
    ///
    /// # Errors
    ///
    /// Each names the path and a remedy.
    ///
    /// | kind | why |
    /// |---|---|
    /// | `NotFound` | the directory is missing |
    /// | `Invalid` | the path is a directory or not a regular file |
    /// | `Denied` | no right to look at the directory |
    /// | `Unreachable` | the file system failed |
    ///
    /// # Cancel safety
    ///
    /// Changes nothing.
    pub async fn open(self) -> Result<JsonFileStore, StateError> {
        self.open_with(try_lock).await
    }

    pub(crate) async fn open_with(self, try_lock: TryLock) -> Result<JsonFileStore, StateError> {
        blocking(move || Location::find(self, try_lock).map(JsonFileStore::at)).await
    }
}
