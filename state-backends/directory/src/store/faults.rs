//! Faults for tests: a store that dies before one of its operations on files, or one of them fails.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
};

/// How many operations are left until the store dies; -1: it lives; less: one fails after so many less two.
#[derive(Clone, Debug)]
pub(crate) struct Faults(Arc<AtomicI64>);

impl Default for Faults {
    fn default() -> Self {
        Self(Arc::new(AtomicI64::new(-1)))
    }
}

impl Faults {
    /// Dies before the operation with this number, counted from 0 and from now.
    pub(crate) fn die_before(&self, operation: i64) {
        self.0.store(operation + 1, Ordering::SeqCst);
    }

    /// How many operations are left until it dies.
    pub(crate) fn left(&self) -> i64 {
        self.0.load(Ordering::SeqCst) - 1
    }

    /// Fails at the operation with this number, counted from 0 and from now, and goes on.
    pub(crate) fn fail_at(&self, operation: i64) {
        self.0.store(-2 - operation, Ordering::SeqCst);
    }

    /// Whether an operation is still to fail.
    pub(crate) fn is_to_fail(&self) -> bool {
        self.0.load(Ordering::SeqCst) < -1
    }

    /// Whether it has died. What would be done then is not done, as if the process had been killed.
    pub(crate) fn is_dead(&self) -> bool {
        self.0.load(Ordering::SeqCst) == 0
    }

    /// Before an operation.
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
