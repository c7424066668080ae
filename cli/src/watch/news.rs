//! What the model hears, what it knows from that, and what it asks for.

use std::time::Duration;

use interval_queue::{
    QueueName, Snapshot,
    contract::Change,
    task_contract::{self, TaskId},
};

use super::history::History;
use crate::tasks::{Summary, TextPage};

/// What is known of a queue.
#[derive(Clone, Debug)]
pub(crate) enum Known {
    /// It has been read.
    Queue(Box<History>),
    /// There is none of that name.
    Missing,
    /// It cannot be read, and that will not pass.
    Unreadable(String),
}

/// The store does not answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Outage {
    /// On the clock of the host.
    pub(crate) since: Duration,
    pub(crate) said: String,
}

/// A change for all shards that a key asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    Pause,
    Resume,
}

impl Wanted {
    pub(crate) fn change(self) -> Change {
        match self {
            Wanted::Pause => Change::Pause,
            Wanted::Resume => Change::Resume,
        }
    }

    /// The same of the stored tasks of the queue.
    pub(crate) fn of_tasks(self) -> task_contract::Change {
        match self {
            Wanted::Pause => task_contract::Change::Pause,
            Wanted::Resume => task_contract::Change::Resume,
        }
    }
}

/// What came of talking to the store.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "there are few at a time, and most are looks")]
pub(crate) enum News {
    /// The names of all queues.
    Names(Vec<QueueName>),
    /// A look at a queue; none: it is not there.
    Look(QueueName, Option<Snapshot>),
    /// A look, and how the stored tasks of the queue stand; none: it has none. Or what the store said that cannot read
    /// them.
    WithTasks(QueueName, Result<Option<Box<Summary>>, String>, Box<News>),
    /// A look at a queue that cannot be read, with what the store said.
    Unreadable(QueueName, String),
    /// The store does not answer, and what was said of that.
    Outage(String),
    /// What was to be opened, or a note that says why it cannot be.
    Opened(Result<TextPage, String>),
    /// A change was made.
    Done(QueueName, Wanted),
    /// It was not, and why.
    NotDone(QueueName, String),
}

/// What a key leads to outside of the screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    None,
    /// Another queue is chosen: it is read soon.
    Look,
    Change(QueueName, Wanted),
    /// A task is opened.
    Open(QueueName, TaskId),
    /// What failed is opened.
    Failures(QueueName),
    Quit,
    Suspend,
}
