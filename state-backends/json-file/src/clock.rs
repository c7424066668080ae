//! The state's clock: the only module that reads one.

use std::{
    fs::File,
    io::{self, Seek, Write},
    time::{SystemTime, UNIX_EPOCH},
};

use interval_queue_contract::{Micros, Reading, StateError};

use crate::{error::cannot, lock::Held};

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
    /// What the clock says while the lock is held.
    pub(crate) fn read(self, held: &Held<'_>) -> Result<Reading, StateError> {
        match self {
            Clock::Host => Ok(host()),
            Clock::FileServer => held
                .file()
                .and_then(stamp)
                .map(reading)
                .map_err(|error| cannot("read the file server's clock from", held.path(), error)),
        }
    }
}

/// What the host's clock says.
#[allow(clippy::disallowed_methods, reason = "the state's clock of a file on one host")]
pub(crate) fn host() -> Reading {
    reading(SystemTime::now())
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

fn reading(now: SystemTime) -> Reading {
    let since_epoch = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_micros();
    Reading::of_clock(Micros::new(u64::try_from(since_epoch).unwrap_or(u64::MAX)))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::lock::{Flock, LockFile, Patience};

    #[test]
    fn the_stamp_is_the_time_of_the_file_system_and_never_goes_back() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state.json.lock");
        let mut lock = LockFile::new(path.clone(), &Flock);
        let before = host().now;
        let mut latest = Micros::ZERO;
        for _ in 0..50 {
            let held = lock.acquire(Patience::begin(Duration::from_secs(5))).unwrap();
            let now = Clock::FileServer.read(&held).unwrap().now;
            assert_eq!(reading(std::fs::metadata(&path).unwrap().modified().unwrap()).now, now);
            assert!(now >= latest, "{now:?} after {latest:?}");
            latest = now;
        }
        let step = Micros::from_millis(2_000);
        assert!(latest + step > before && latest < host().now + step, "{latest:?} is not near {before:?}");
        assert_eq!(std::fs::metadata(&path).unwrap().len(), 1, "every stamp writes the same byte");
    }

    #[test]
    fn an_instant_before_the_epoch_is_zero() {
        assert_eq!(reading(UNIX_EPOCH - Duration::from_secs(1)).now, Micros::ZERO);
        assert_eq!(reading(UNIX_EPOCH + Duration::from_nanos(1_999)).now, Micros::new(1));
    }
}
