//! The clock of a file: the host's, or that of the server which has the file.

use std::{
    fs::File,
    io::{self, Seek, Write},
    time::SystemTime,
};

use interval_queue_contract::StateError;
use interval_queue_store::files::{
    cannot,
    clock::{host, micros},
};

use super::lock::Held;

/// Whose clock decides. All processes that share a file must choose the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Clock {
    /// The system clock of the host. The default, and right for the processes of one host.
    ///
    /// Several hosts must be kept in step, as NTP does to within milliseconds. If one is ahead of another by
    /// `s`:
    ///
    /// - up to a second, the host behind reckons with the latest instant seen, and its jobs start up to `s`
    ///   late; when the queue was quiet, the first start of the host ahead can come up to `s` too close to
    ///   the one before;
    /// - beyond a second, each change from the host ahead to the one behind looks like a clock that was set
    ///   back, and slots of the two may lie closer than the interval;
    /// - leases of the host behind end up to `s` early.
    #[default]
    Host,
    /// The clock of the server that holds the file: the modification time that it stamps on a byte written.
    ///
    /// Every command, a look included, then takes the lock, writes a byte and flushes it. A stamp is only as
    /// fine as the server's file system makes it: microseconds on the usual ones from Linux 6.13 on, a tick
    /// of the kernel (1 to 10 ms) before, two seconds on FAT. Slots keep their distance on that clock; real
    /// starts deviate by up to one such step.
    FileServer,
}

impl Clock {
    /// What the clock says while the lock is held, in microseconds.
    #[doc(hidden)]
    #[allow(clippy::missing_errors_doc, reason = "as its file system does")]
    pub fn read(self, held: &Held<'_>) -> Result<u64, StateError> {
        match self {
            Clock::Host => Ok(host()),
            Clock::FileServer => held
                .file()
                .and_then(stamp)
                .map(micros)
                .map_err(|error| cannot("read the file server's clock from", held.path(), error)),
        }
    }
}

/// Has the server stamp the lock file.
///
/// The lock file and no stamp file of our own: every host keeps it open, so that no client is given leave to
/// stamp it by itself, as NFS may grant for a file that one client alone uses; and it is never replaced.
fn stamp(mut file: &File) -> io::Result<SystemTime> {
    file.rewind()?;
    file.write_all(b"\n")?;
    // A network client may keep the byte, and answer with a time of its own, until it is flushed.
    file.sync_data()?;
    file.metadata()?.modified()
}

#[cfg(test)]
#[path = "../../tests/unit/clock_unit.rs"]
mod tests;
