//! The line of a shard, whose jobs are futures; and what the shard knows of its driver.

use std::ops::{Deref, DerefMut};

use interval_queue_contract::Memory;
pub(crate) use interval_queue_line::*;

/// A line, and who looks after it. All of it is behind one lock.
pub(crate) struct Kept<J, C, A> {
    line: Line<J, C, A>,
    /// Whether a driver task is alive.
    pub(crate) driving: bool,
    /// Whether the driver ended with its runtime instead of by itself.
    pub(crate) orphaned: bool,
    /// Whether it takes no new job.
    pub(crate) closed: bool,
    /// Whether it takes not even the next attempt of one.
    pub(crate) shut_down: bool,
    /// Jobs between two attempts.
    pub(crate) backing_off: usize,
    /// Whether a task watches the queue, see `wake.rs`.
    pub(crate) watched: bool,
    /// Whether it was told that starts cannot be spaced.
    pub(crate) unspaced: bool,
    /// What was seen to be in force when that was last told.
    pub(crate) told: Option<Memory>,
}

impl<J, C, A> Kept<J, C, A> {
    pub(crate) fn new(line: Line<J, C, A>) -> Self {
        Self {
            line,
            driving: false,
            orphaned: false,
            closed: false,
            shut_down: false,
            backing_off: 0,
            watched: false,
            unspaced: false,
            told: None,
        }
    }

    /// Whether nothing waits, runs or is to be tried again.
    pub(crate) fn is_idle(&self) -> bool {
        self.line.is_quiet() && self.backing_off == 0
    }
}

impl<J, C, A> Deref for Kept<J, C, A> {
    type Target = Line<J, C, A>;

    fn deref(&self) -> &Self::Target {
        &self.line
    }
}

impl<J, C, A> DerefMut for Kept<J, C, A> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.line
    }
}
