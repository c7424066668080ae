//! One change of the text: lock, read, change, replace, unlock.

use std::path::Path;

use interval_queue_contract::StateError;

use super::{
    Clock, Fsync, Replacement,
    file::{Flush, TextFile},
    latency::LatencyEstimate,
    location::Location,
    lock::{Held, LockFile},
};

/// Used by one handle of the process at a time.
#[derive(Debug)]
pub(crate) struct Open {
    pub(crate) lock: LockFile,
    pub(crate) stored: Stored,
}

#[derive(Debug)]
pub(crate) struct Stored {
    file: TextFile,
    clock: Clock,
    estimate: LatencyEstimate,
    /// Kept to reuse their memory.
    before: Vec<u8>,
    after: Vec<u8>,
}

#[derive(Debug)]
pub(crate) struct Change<'a> {
    /// Named in errors.
    pub(crate) path: &'a Path,
    /// `None`: there is no file.
    pub(crate) before: Option<&'a [u8]>,
    /// Empty: nothing is changed.
    pub(crate) after: &'a mut Vec<u8>,
    /// Microseconds of the store's clock.
    pub(crate) now: u64,
}

impl Open {
    pub(crate) fn new(location: &Location) -> Self {
        let options = &location.options;
        let flush = match (options.fsync, options.clock) {
            (Fsync::Always, _) => Flush::ContentsAndName,
            // A network client reports a full disk only at the flush; an incomplete file must not
            // be renamed.
            (Fsync::Never, Clock::FileServer) => Flush::Contents,
            (Fsync::Never, Clock::Host) => Flush::Nothing,
        };
        let in_place = options.replacement == Replacement::InPlace && flush == Flush::Nothing;
        let stored = Stored {
            file: TextFile::new(location.path().to_owned(), in_place, flush),
            clock: options.clock,
            estimate: LatencyEstimate::default(),
            before: Vec::new(),
            after: Vec::new(),
        };
        Self { lock: location.lock(), stored }
    }

    pub(crate) fn is_probably_quick(&self) -> bool {
        !self.stored.file.is_flushed() && self.stored.estimate.is_quick()
    }
}

impl Stored {
    pub(crate) fn carry_out<T>(
        &mut self,
        held: &Held<'_>,
        work: impl FnOnce(&mut Change<'_>) -> Result<T, StateError>,
    ) -> Result<T, StateError> {
        let Self { file, clock, estimate, before, after } = self;
        estimate.watch(|| {
            let before = file.read(before)?;
            after.clear();
            let now = clock.read(held)?;
            let done = work(&mut Change { path: file.path(), before, after, now })?;
            if !after.is_empty() {
                file.replace(before.map_or(0, <[u8]>::len), after)?;
            }
            Ok(done)
        })
    }
}
