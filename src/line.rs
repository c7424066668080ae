//! A shard's line, whose jobs are futures, with the flags of its driver.

use std::ops::{Deref, DerefMut};

use interval_queue_contract::Memory;
pub(crate) use interval_queue_line::*;

/// One lock for both.
pub(crate) struct DrivenLine<J, C, A> {
    line: Line<J, C, A>,
    pub(crate) driving: bool,
    /// Whether the runtime dropped the driver before it had finished.
    pub(crate) orphaned: bool,
    pub(crate) closed: bool,
    pub(crate) shut_down: bool,
    pub(crate) backing_off: usize,
    /// See `wake.rs`.
    pub(crate) watched: bool,
    pub(crate) unspaced: bool,
    /// The record as of the last logged change.
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

    /// No job waits, runs or is to be retried.
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
