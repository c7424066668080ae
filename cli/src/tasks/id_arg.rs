//! A task on the command line: its id, or the end of it.

use std::{fmt, str::FromStr};

use interval_queue_tasks::{MIN_SUFFIX, TaskId, TaskQueue};

use crate::exit::Failure;

/// Or the last characters of the id of one stored task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum IdArg {
    Whole(TaskId),
    Suffix(String),
}

impl fmt::Display for IdArg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(id) => id.fmt(f),
            Self::Suffix(suffix) => suffix.fmt(f),
        }
    }
}

impl FromStr for IdArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(id) = text.parse() {
            return Ok(Self::Whole(id));
        }
        let is_of_id = text.chars().all(|c| c == '-' || c.is_ascii_hexdigit());
        if text.len() >= MIN_SUFFIX && is_of_id {
            return Ok(Self::Suffix(text.to_owned()));
        }
        Err(format!(
            "{text:?} is no task id: give it as in 01957b6e-5e1a-7c3e-9a53-0c6e3a1f2b4d, or its last {MIN_SUFFIX} \
             characters or more"
        ))
    }
}

impl IdArg {
    /// Only the end of an id is looked up.
    pub(super) async fn id(&self, queue: &TaskQueue) -> Result<TaskId, Failure> {
        match self {
            Self::Whole(id) => Ok(*id),
            Self::Suffix(suffix) => Ok(queue.find_by_suffix(suffix).await?),
        }
    }

    pub(super) async fn ids(queue: &TaskQueue, args: &[Self]) -> Result<Vec<TaskId>, Failure> {
        let mut ids = Vec::with_capacity(args.len());
        for arg in args {
            ids.push(arg.id(queue).await?);
        }
        Ok(ids)
    }
}
