//! How long a command waits for those who have the database, and how often it looks whether they are done.
//!
//! SQLite's own busy handler waits in steps of up to 100 ms, and is not asked in every case.

use std::{
    hash::{BuildHasher, RandomState},
    thread,
    time::{Duration, Instant},
};

use rusqlite::ErrorCode::{DatabaseBusy, DatabaseLocked, FileLockingProtocolFailed};

use crate::error::code;

/// The first pause; each further one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_micros(50);
/// Pauses grow up to this part of the wait so far: a crowd that looks more often keeps the one who has the
/// database from the processor, and ends up being served a tenth as fast.
const PART_OF_WAIT: u32 = 8;
/// What that part is at least and at most, so that a lock given back is soon noticed.
const LONGEST_PAUSE: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(10));

/// How long a command has been waiting, and how long it may.
#[derive(Debug)]
pub(crate) struct Patience {
    begun: Instant,
    limit: Duration,
}

impl Patience {
    #[allow(
        clippy::disallowed_methods,
        reason = "measures how long a command waits, never an instant of the state"
    )]
    pub(crate) fn begin(limit: Duration) -> Self {
        Self { begun: Instant::now(), limit }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.begun.elapsed() >= self.limit
    }

    /// Makes an attempt, and again while somebody else has the database, until patience is over: then the
    /// last error.
    pub(crate) fn until_free<T>(
        &self,
        mut attempt: impl FnMut() -> rusqlite::Result<T>,
    ) -> rusqlite::Result<T> {
        let mut pause = FIRST_PAUSE;
        loop {
            match attempt() {
                Err(error) if is_busy(&error) && !self.is_over() => self.rest(&mut pause),
                result => return result,
            }
        }
    }

    /// Makes an attempt, and again until it succeeds or patience is over: none.
    #[cfg(unix)]
    pub(crate) fn until_some<T>(&self, mut attempt: impl FnMut() -> Option<T>) -> Option<T> {
        let mut pause = FIRST_PAUSE;
        loop {
            match attempt() {
                None if !self.is_over() => self.rest(&mut pause),
                result => return result,
            }
        }
    }

    fn rest(&self, pause: &mut Duration) {
        thread::sleep(jittered(*pause));
        let (least, most) = LONGEST_PAUSE;
        let part = self.begun.elapsed() / PART_OF_WAIT;
        *pause = (*pause * 2).min(part.clamp(least, most));
    }
}

/// Whether somebody else has the database: to write, to recover what a killed process left, or to close it as
/// the last one.
pub(crate) fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(code(error), Some(DatabaseBusy | DatabaseLocked | FileLockingProtocolFailed))
}

/// Between half of `pause` and all of it, so that those who wait do not come back together.
fn jittered(pause: Duration) -> Duration {
    let random = RandomState::new().hash_one(()) % 512;
    pause * (512 + random as u32) / 1024
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn who_waits_long_looks_rarely() {
        let mut looks = 0;
        let patience = Patience::begin(Duration::from_secs(1));
        let nothing: Option<()> = patience.until_some(|| {
            looks += 1;
            None
        });
        assert!(nothing.is_none() && (2..400).contains(&looks), "{looks}");
    }
}
