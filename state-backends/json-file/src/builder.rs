//! The options of a state file, and the step that opens it.

use std::{path::PathBuf, time::Duration};

use interval_queue_contract::StateError;

use crate::{Clock, JsonFileState, lock::Flock};

/// How a [`JsonFileState`] is opened. Made by [`JsonFileState::builder`].
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
    /// Written to `<file>.tmp`, which is renamed over the file. Whoever reads the file without its lock, as
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

    /// Checks the path and what is stored there, creates the lock file and probes that it excludes.
    ///
    /// The state file itself need not be there; the first command that changes something creates it.
    ///
    /// # Errors
    ///
    /// Each names the path and the way out; what is stored stays as it is.
    ///
    /// | kind | why |
    /// |---|---|
    /// | `NotFound` | the directory is missing |
    /// | `Invalid` | the path is a directory or anything else than a file |
    /// | `Denied` | no right to read the file or to write to the directory, or a read-only place |
    /// | `Damaged` | the file is empty, cut off, not JSON, or names a queue twice |
    /// | `Foreign` | it is JSON of something else, or the lock file is not one |
    /// | `NewerVersion` | a newer version of this software wrote it |
    /// | `Full` | no room for the lock file |
    /// | `Unsupported` | the lock does not exclude here |
    /// | `Unreachable` | another process held the lock too long, or the file system failed |
    ///
    /// # Cancel safety
    ///
    /// A dropped future may leave an empty lock file, nothing else.
    pub async fn open(self) -> Result<JsonFileState, StateError> {
        JsonFileState::open_with(self, &Flock).await
    }
}
