//! The clock of a file: the host's, or the file server's.

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

/// Whose clock decides. All processes that share a file must choose the same one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Clock {
    /// The system clock of the host. The default, and right for the processes of one host.
    ///
    /// Several hosts must synchronize their clocks, as NTP does to within milliseconds. If host A
    /// is `s` ahead of host B:
    ///
    /// - Up to one second: B continues from the latest instant seen and starts jobs up to `s` late.
    ///   After a quiet period, A's first start can be up to `s` too early.
    /// - Beyond one second: each change of B after one of A looks like a clock set back. Slots of A
    ///   and B may be closer than the interval.
    /// - B's leases end up to `s` early.
    #[default]
    Host,
    /// The file server's clock: the modification time of a written byte.
    ///
    /// Every command, including reads, takes the lock, writes a byte and flushes it. The resolution
    /// is that of the server's file system: normally microseconds from Linux 6.13 on, before that a
    /// kernel tick (1 to 10 ms); two seconds on FAT. Slots keep their distance on that clock; real
    /// starts deviate by up to one unit of it.
    FileServer,
}

impl Clock {
    /// Microseconds of this clock, read under the lock.
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

/// Every host keeps the lock file open and it is never replaced: NFS may let a client stamp a file
/// locally if no other client uses it.
fn stamp(mut file: &File) -> io::Result<SystemTime> {
    file.rewind()?;
    file.write_all(b"\n")?;
    // Until a flush, a network client may keep the byte and report its own time.
    file.sync_data()?;
    file.metadata()?.modified()
}

#[cfg(test)]
#[path = "../../tests/unit/clock_unit.rs"]
mod tests;
