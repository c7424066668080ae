//! The command lines of the verbs of `tasks` that have options of their own.

use std::time::Duration;

use clap::{ArgGroup, Args};
use interval_queue::Micros;
use interval_queue_documents::duration::delay;
use interval_queue_tasks::{Key, NewEdge, OnFailure, Tag, TaskId, Verb};

use super::task_args::{Change, SELECTOR};
use crate::add::{key, tag};

/// The tasks to run again.
#[derive(Debug, Args)]
pub(super) struct Retry {
    /// With --flow ID alone or --downstream: also run done tasks again, each after its upstreams
    #[arg(long)]
    pub(super) done: bool,
    #[command(flatten)]
    pub(super) change: Change,
}

/// Set a new time for tasks that do not run; they wait for it.
#[derive(Debug, Args)]
#[command(after_help = format!("Examples:\n  \
    interval-queue tasks delay --by 2h --kind mail --state ready\n  \
    interval-queue tasks delay --by 1day --error 'quota exceeded' --kind mail\n\n{SELECTOR}"))]
pub(super) struct Delay {
    /// Time from now until they may start
    #[arg(long, value_name = "DURATION", value_parser = delay)]
    by: Duration,
    #[command(flatten)]
    pub(super) change: Change,
}

/// Set the priority of tasks that have not ended, as if they had been added with it. Running tasks
/// continue.
#[derive(Debug, Args)]
#[command(after_help = format!("Example:\n  interval-queue tasks priority --to 5 --tag customer-7\n\n{SELECTOR}"))]
pub(super) struct Priority {
    /// The priority, from -100 to 100; higher starts earlier
    #[arg(long, value_name = "PRIORITY", allow_negative_numbers = true)]
    to: i32,
    #[command(flatten)]
    pub(super) change: Change,
}

/// Add a tag to tasks, or remove one, also if they run or have ended.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("what").args(["add", "remove"]).required(true))]
#[command(after_help = format!("Examples:\n  \
    interval-queue tasks tag --add checked --state failed --error timeout\n  \
    interval-queue tasks tag --remove checked --all\n\n{SELECTOR}"))]
pub(super) struct ChangeTag {
    /// The tag to add
    #[arg(long, value_name = "TAG", value_parser = tag)]
    add: Option<Tag>,
    /// The tag to remove
    #[arg(long, value_name = "TAG", value_parser = tag)]
    remove: Option<Tag>,
    #[command(flatten)]
    pub(super) change: Change,
}

/// Let tasks that do not run wait for one more task; then they wait for their time and key as
/// before.
///
/// A task that would wait for itself, directly or through other tasks, is left unchanged. So is a
/// task that more than 200 tasks wait for, if the task of --after waits for other tasks itself.
#[derive(Debug, Args)]
#[command(after_help = format!("Examples:\n  \
    id=01957b6e-5e1a-7c3e-9a53-0c6e3a1f2b4d\n  \
    interval-queue tasks link --after $id --tag import-7\n  \
    interval-queue tasks link --after $id --as list --on-failure run --kind mail\n\n{SELECTOR}"))]
pub(super) struct Link {
    /// The task to wait for, in any state
    #[arg(long, value_name = "ID")]
    after: TaskId,
    /// Name of the input that has its result. Default: its id
    #[arg(long = "as", value_name = "NAME", value_parser = key)]
    name: Option<Key>,
    /// Effect on the selected tasks if that task fails or is cancelled: cancel, run or wait
    #[arg(long, value_name = "WHAT", default_value = "cancel")]
    on_failure: OnFailure,
    #[command(flatten)]
    pub(super) change: Change,
}

/// Let tasks no longer wait for a task. A failed or cancelled task does not wait for it when it is
/// retried.
#[derive(Debug, Args)]
#[command(after_help = format!("Example:\n  \
    id=01957b6e-5e1a-7c3e-9a53-0c6e3a1f2b4d\n  \
    interval-queue tasks unlink --after $id --tag import-7\n\n{SELECTOR}"))]
pub(super) struct Unlink {
    /// The task that they wait for now
    #[arg(long, value_name = "ID")]
    after: TaskId,
    #[command(flatten)]
    pub(super) change: Change,
}

impl Link {
    pub(super) fn verb(&self) -> Verb {
        Verb::Link(NewEdge { up: self.after, name: self.name.clone(), on_failure: self.on_failure })
    }
}

impl Unlink {
    pub(super) fn verb(&self) -> Verb {
        Verb::Unlink(self.after)
    }
}

impl Delay {
    pub(super) fn verb(&self) -> Verb {
        Verb::Delay(Micros::from_duration(self.by))
    }
}

impl Priority {
    pub(super) fn verb(&self) -> Verb {
        Verb::Priority(self.to)
    }
}

impl ChangeTag {
    pub(super) fn verb(&self) -> Option<Verb> {
        self.add.clone().map(Verb::Tag).or_else(|| self.remove.clone().map(Verb::Untag))
    }
}
