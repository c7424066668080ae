//! Fault injection for tests: the store dies before a chosen file operation, or one operation
//! fails.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
};

/// -1: none. 0: the store has died. n > 0: it dies before the nth operation from now. n < -1: the
/// operation `-2 - n`, counted from 0, fails.
#[derive(Clone, Debug)]
pub(crate) struct Faults(Arc<AtomicI64>);

impl Default for Faults {
    fn default() -> Self {
        Self(Arc::new(AtomicI64::new(-1)))
    }
}

impl Faults {
    /// Counts operations from 0 and from now.
    pub(crate) fn die_before(&self, operation: i64) {
        self.0.store(operation + 1, Ordering::SeqCst);
    }

    /// Operations left until the store dies.
    pub(crate) fn left(&self) -> i64 {
        self.0.load(Ordering::SeqCst) - 1
    }

    /// Counts operations from 0 and from now; later operations succeed.
    pub(crate) fn fail_at(&self, operation: i64) {
        self.0.store(-2 - operation, Ordering::SeqCst);
    }

    pub(crate) fn is_to_fail(&self) -> bool {
        self.0.load(Ordering::SeqCst) < -1
    }

    /// A dead store does nothing more, as if its process had been killed.
    pub(crate) fn is_dead(&self) -> bool {
        self.0.load(Ordering::SeqCst) == 0
    }

    /// Counts a file operation, which must not be carried out if this fails.
    pub(crate) fn step(&self) -> io::Result<()> {
        let left = self.0.load(Ordering::Relaxed);
        if left == -1 {
            return Ok(());
        }
        if left < -1 {
            self.0.store(left + 1, Ordering::SeqCst);
            return if left < -2 { Ok(()) } else { Err(io::Error::other("the test has failed this")) };
        }
        if left > 0 {
            self.0.store(left - 1, Ordering::SeqCst);
        }
        if left > 1 { Ok(()) } else { Err(io::Error::other("the test has killed the store here")) }
    }
}
