//! The identity of a run.

use std::fmt;

use interval_queue_task_contract::{TaskId, Token};

/// One run of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId {
    /// The task.
    pub id: TaskId,
    /// The token of the run.
    pub token: Token,
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.id, self.token)
    }
}
