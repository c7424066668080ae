//! Messages to the model, its knowledge of queues, and the effects of keys.

use std::time::Duration;

use interval_queue::{QueueName, Snapshot};
use interval_queue_tasks::TaskId;

use super::history::History;
use crate::tasks::{Summary, TextPage};

/// The last read of a queue.
#[derive(Clone, Debug)]
pub(crate) enum Known {
    /// The queue was read.
    Queue(Box<History>),
    /// The queue does not exist.
    Missing,
    /// The queue cannot be read, and a retry does not help.
    Unreadable(String),
}

/// An outage of the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Outage {
    /// Start of the outage, on the clock of the host.
    pub(crate) since: Duration,
    pub(crate) error: String,
}

/// A change for all shards that a key requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    Pause,
    Resume,
}

/// A result from the store.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "there are few at a time, and most are reads")]
pub(crate) enum Message {
    /// The names of all queues.
    Names(Vec<QueueName>),
    /// A queue was read. `None`: it does not exist.
    Read(QueueName, Option<Snapshot>),
    /// A queue was read, with the status of its stored tasks. `None`: it has none. The error of the
    /// store if they cannot be read.
    WithTasks(QueueName, Result<Option<Box<Summary>>, String>, Box<Message>),
    /// A queue cannot be read, with the error of the store.
    Unreadable(QueueName, String),
    /// The store does not answer, with the error.
    Outage(String),
    /// A page to open, or a note with the reason why it cannot be opened.
    Opened(Result<TextPage, String>),
    /// A change was made.
    Done(QueueName, Wanted),
    /// A change was not made, with the reason.
    NotDone(QueueName, String),
}

/// The effect of a key outside of the model.
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
