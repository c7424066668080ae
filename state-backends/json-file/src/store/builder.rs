//! The options of a state file, and the step that opens it.

use std::{path::PathBuf, time::Duration};

use interval_queue_contract::{InvalidInput, StateError};
use interval_queue_store::{
    Url,
    files::{blocking, lock::try_lock},
};

use super::{Clock, JsonFileStore, location::Location, lock::TryLock};

/// How a [`JsonFileStore`] is opened. Made by [`JsonFileStore::builder`] or from a URL.
#[derive(Clone, Debug)]
#[must_use = "nothing is opened before `open`"]
pub struct Builder {
    pub(crate) path: PathBuf,
    pub(crate) fsync: Fsync,
    pub(crate) replacement: Replacement,
    pub(crate) clock: Clock,
    pub(crate) lock_timeout: Duration,
}

/// Whether a new state is flushed to the disk before a command is answered.
///
/// The [crate's documentation](crate#why-there-is-no-fsync-by-default) says what each costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Fsync {
    /// The operating system writes when it likes. A killed process loses nothing. The default.
    #[default]
    Never,
    /// The new file is flushed before it is renamed, and the directory after; no file is overwritten.
    Always,
}

/// How a new state takes the place of the old one. Processes that share a file may choose differently.
///
/// The [crate's documentation](crate#how-a-state-is-replaced) says what each is safe against.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Replacement {
    /// Over the old one where no killed process can spoil it: on Linux, on a local file system, for a text of
    /// up to 4,096 bytes (a dozen shards with work) that is no longer than the one before, with
    /// [`Fsync::Never`] and [`Clock::Host`]. Everywhere else as [`Rename`](Self::Rename). The default, and
    /// many times as fast. The file may end with blanks.
    #[default]
    InPlace,
    /// Written to `<file>.tmp`, which is renamed over the file. A reader without the lock, as
    /// `cat` does, sees the old text or the new one, never a part of each.
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

    /// What `file:PATH` says, with the parameters `fsync` (`never` or `always`), `replacement` (`in-place` or
    /// `rename`), `clock` (`host` or `server`) and `lock_timeout`.
    ///
    /// # Errors
    ///
    /// There is no path, or a parameter is unknown or cannot be used.
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

    /// Whether a new state is flushed to the disk. Default: [`Fsync::Never`].
    pub fn fsync(mut self, fsync: Fsync) -> Self {
        self.fsync = fsync;
        self
    }

    /// How a new state takes the place of the old one. Default: [`Replacement::InPlace`].
    pub fn replacement(mut self, replacement: Replacement) -> Self {
        self.replacement = replacement;
        self
    }

    /// Whose clock decides; all processes that share the file must choose the same. Default: [`Clock::Host`].
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// How long a command waits for another process to give the lock back, before it ends as
    /// [`Unreachable`](interval_queue_contract::StateErrorKind::Unreachable). A healthy process holds the
    /// lock for a fraction of a millisecond. Default: 5 s.
    pub fn lock_timeout(mut self, timeout: Duration) -> Self {
        self.lock_timeout = timeout;
        self
    }

    /// Finds the file, which need not be there, in a directory that must be. Nothing is created; what is in
    /// the file is looked at by those who keep something there.
    ///
    /// # Errors
    ///
    /// Each names the path and the way out.
    ///
    /// | kind | why |
    /// |---|---|
    /// | `NotFound` | the directory is missing |
    /// | `Invalid` | the path is a directory or anything else than a file |
    /// | `Denied` | no right to look at the directory |
    /// | `Unreachable` | the file system failed |
    ///
    /// # Cancel safety
    ///
    /// It changes nothing.
    pub async fn open(self) -> Result<JsonFileStore, StateError> {
        self.open_with(try_lock).await
    }

    pub(crate) async fn open_with(self, try_lock: TryLock) -> Result<JsonFileStore, StateError> {
        blocking(move || Location::find(self, try_lock).map(JsonFileStore::at)).await
    }
}
