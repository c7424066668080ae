//! The options of a task on the command line.

use std::time::Duration;

use clap::{Args, ValueEnum, value_parser};
use interval_queue::MAX_WEIGHT;
use interval_queue_documents::duration::{deadline, delay};
use interval_queue_tasks::{Json, Key, Kind, MAX_ATTEMPTS, MAX_PRIORITY, OnConflict, Tag, Task};

/// The options of a task, without its payload.
#[derive(Debug, Args)]
pub(crate) struct TaskOptions {
    /// Kind of the tasks: selects the handler that runs them; 1 to 200 bytes of printable text
    #[arg(long, value_name = "KIND", default_value = "default", value_parser = kind)]
    kind: Kind,
    /// Priority from -100 to 100; higher starts earlier. A priority of 1 is worth a day of waiting
    #[arg(long, value_name = "N", default_value_t = 0, allow_hyphen_values = true)]
    #[arg(value_parser = value_parser!(i32).range(-i64::from(MAX_PRIORITY)..=i64::from(MAX_PRIORITY)))]
    priority: i32,
    /// Limit how many tasks of this key run at once: 1, unless `tasks set --key-limit` is used.
    /// Default: no key
    #[arg(long, value_name = "KEY", value_parser = key)]
    key: Option<Key>,
    /// Run the tasks of the key strictly in the order of adding, also across retries
    #[arg(long, requires = "key")]
    ordered: bool,
    /// Do not start before this time has passed. Default: start at once
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true, value_parser = delay)]
    delay: Option<Duration>,
    /// Fail if not started within this time; a task that still runs then is asked to stop. Default:
    /// none
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true, value_parser = deadline)]
    deadline: Option<Duration>,
    /// Add nothing if a task that has not ended holds this unique name, unless --on-conflict is given.
    /// Default: none
    ///
    /// The id of the task that holds the name is printed, and a line on stderr.
    #[arg(long, value_name = "NAME", value_parser = key)]
    pub(crate) unique: Option<Key>,
    /// Release the unique name when the task starts, instead of when it ends
    #[arg(long, requires = "unique")]
    unique_until_leased: bool,
    /// If another task holds the unique name: keep that task, give it this payload and these options
    /// unless it runs, or refuse all tasks of the command
    #[arg(long, value_enum, value_name = "HOW", default_value_t = OnConflictArg::Keep, requires = "unique")]
    on_conflict: OnConflictArg,
    /// Fail for good after N failures; 1: run at most once. Default: what the kind or queue sets, at
    /// first 5
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=i64::from(MAX_ATTEMPTS)))]
    max_attempts: Option<u32>,
    /// Intervals of the rate that a start takes, and capacity of a worker that a run takes
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = value_parser!(u32).range(1..=i64::from(MAX_WEIGHT)))]
    weight: u32,
    /// Tag to select the tasks by; may be given several times
    #[arg(long = "tag", value_name = "TAG", value_parser = tag)]
    tags: Vec<Tag>,
}

/// The action if another task holds the unique name.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum OnConflictArg {
    Keep,
    Replace,
    Refuse,
}

impl From<OnConflictArg> for OnConflict {
    fn from(on_conflict: OnConflictArg) -> Self {
        match on_conflict {
            OnConflictArg::Keep => Self::Keep,
            OnConflictArg::Replace => Self::Replace,
            OnConflictArg::Refuse => Self::Refuse,
        }
    }
}

pub(crate) fn kind(text: &str) -> Result<Kind, String> {
    Kind::new(text).map_err(|error| error.to_string())
}

pub(crate) fn key(text: &str) -> Result<Key, String> {
    Key::new(text).map_err(|error| error.to_string())
}

pub(crate) fn tag(text: &str) -> Result<Tag, String> {
    Tag::new(text).map_err(|error| error.to_string())
}

impl TaskOptions {
    /// A task that holds the unique name rejects the command.
    pub(crate) fn refuses(&self) -> bool {
        matches!(self.on_conflict, OnConflictArg::Refuse)
    }

    pub(crate) fn task(&self, payload: Json) -> Task {
        let task = Task::json(self.kind.as_str(), payload).priority(self.priority).weight(self.weight);
        let mut task = self.tags.iter().fold(task, |task, tag| task.tag(tag.as_str()));
        if let Some(key) = &self.key {
            task = task.key(key.as_str());
        }
        if self.ordered {
            task = task.ordered();
        }
        if let Some(delay) = self.delay {
            task = task.delay(delay);
        }
        if let Some(deadline) = self.deadline {
            task = task.deadline(deadline);
        }
        if let Some(unique) = &self.unique {
            task = match self.unique_until_leased {
                true => task.unique_until_leased(unique.as_str()),
                false => task.unique(unique.as_str()),
            };
            task = task.on_conflict(self.on_conflict.into());
        }
        if let Some(attempts) = self.max_attempts {
            task = task.max_attempts(attempts);
        }
        task
    }
}
