//! A shard's line, whose jobs are futures, with the flags of its driver.

use std::ops::{Deref, DerefMut};

use interval_queue_contract::Memory;
pub(crate) use interval_queue_line::*;

/// A line and the state of its driver, behind one lock.
pub(crate) struct DrivenLine<J, C, A> {
    line: Line<J, C, A>,
    /// Whether a driver task is alive.
    pub(crate) driving: bool,
    /// Whether the runtime dropped the driver before it had finished.
    pub(crate) orphaned: bool,
    /// Whether new jobs are rejected.
    pub(crate) closed: bool,
    /// Whether retries are rejected, too.
    pub(crate) shut_down: bool,
    /// Jobs between two attempts.
    pub(crate) backing_off: usize,
    /// Whether a task watches the queue, see `wake.rs`.
    pub(crate) watched: bool,
    /// Whether `starts.unspaced` was logged.
    pub(crate) unspaced: bool,
    /// The memory of the record as of the last logged change.
    pub(crate) logged: Option<Memory>,
}

impl<J, C, A> DrivenLine<J, C, A> {
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
            logged: None,
        }
    }

    /// Whether no job waits, runs or is to be retried.
    pub(crate) fn is_idle(&self) -> bool {
        self.line.is_quiet() && self.backing_off == 0
    }
}

impl<J, C, A> Deref for DrivenLine<J, C, A> {
    type Target = Line<J, C, A>;

    fn deref(&self) -> &Self::Target {
        &self.line
    }
}

impl<J, C, A> DerefMut for DrivenLine<J, C, A> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.line
    }
}
