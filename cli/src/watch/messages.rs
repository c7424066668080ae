//! Messages to the model, and the effects of keys.

use interval_queue::QueueName;
use interval_queue_tasks::TaskId;

use super::queue_state::{Details, QueueState};
use crate::tasks::TextPage;

/// A change for all shards and workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    Pause,
    Resume,
}

#[derive(Debug)]
pub(crate) enum Message {
    /// The names of all queues.
    Names(Vec<QueueName>),
    /// A queue was read.
    Read(QueueName, Box<QueueState>),
    /// The details of a queue were read.
    Details(QueueName, Details),
    /// The store does not answer, with the error.
    Outage(String),
    /// A page to open, or the reason why it cannot be opened.
    Opened(Result<TextPage, String>),
    /// A change was made, or the reason why not.
    Changed(QueueName, Wanted, Result<(), String>),
}

/// Effect of a key outside of the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    None,
    /// Another queue was chosen: read it soon.
    Read,
    Change(QueueName, Wanted),
    /// Open a task.
    Open(QueueName, TaskId),
    /// Open the failures.
    Failures(QueueName),
    Quit,
    Suspend,
}
