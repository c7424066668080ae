//! What the command line of the verbs of `tasks` says that say more than which tasks.

use std::time::Duration;

use clap::{ArgGroup, Args};
use interval_queue::{
    Micros,
    task_contract::{Key, NewEdge, OnFailure, Tag, TaskId, Verb},
};

use super::task_args::Change;
use crate::add::{key, tag};

/// What is run again.
#[derive(Debug, Args)]
pub(super) struct Retry {
    /// With --flow ID alone or --downstream: also what is done, each task once those that it waits for have ended again
    #[arg(long)]
    pub(super) done: bool,
    #[command(flatten)]
    pub(super) change: Change,
}

/// Give tasks that nobody runs a new time, and have them wait for it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    interval-queue tasks delay --by 2h --kind mail --state ready\n  \
    interval-queue tasks delay --by 1day --error 'quota exceeded' --state scheduled")]
pub(super) struct Delay {
    /// How long from now they wait at least
    #[arg(long, value_name = "DURATION", value_parser = crate::duration::delay)]
    by: Duration,
    #[command(flatten)]
    pub(super) change: Change,
}

/// Give tasks that have not ended another priority, as if they had been added with it. Runs go on.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  interval-queue tasks priority --to 5 --tag customer-7")]
pub(super) struct Priority {
    /// From -100 to 100; the higher, the more urgent
    #[arg(long, value_name = "PRIORITY", allow_negative_numbers = true)]
    to: i32,
    #[command(flatten)]
    pub(super) change: Change,
}

/// Give tasks a tag, or take one from them. Those that run or have ended, too.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("what").args(["add", "remove"]).required(true))]
#[command(after_help = "Examples:\n  \
    interval-queue tasks tag --add looked-at --state failed --error timeout\n  \
    interval-queue tasks tag --remove looked-at --all")]
pub(super) struct ChangeTag {
    /// The tag they get
    #[arg(long, value_name = "TAG", value_parser = tag)]
    add: Option<Tag>,
    /// The tag they lose
    #[arg(long, value_name = "TAG", value_parser = tag)]
    remove: Option<Tag>,
    #[command(flatten)]
    pub(super) change: Change,
}

/// Have tasks that nobody runs wait for one more task, too, and then go on to where they were: their time, their key.
///
/// None can wait for itself, through whatever others: such tasks are kept as they are. So are tasks for which more than
/// 200 others wait, if the one of --after waits for others itself.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    interval-queue tasks link --after 01957b6e-5e1a-7c3e-9a53-0c6e3a1f2b4d --tag import-7\n  \
    interval-queue tasks link --after 01957b6e-5e1a-7c3e-9a53-0c6e3a1f2b4d --as list --on-failure run --kind mail")]
pub(super) struct Link {
    /// The task that they wait for, whether it waits, runs or has ended
    #[arg(long, value_name = "ID")]
    after: TaskId,
    /// What they call its result; its id unless given
    #[arg(long = "as", value_name = "NAME", value_parser = key)]
    name: Option<Key>,
    /// What becomes of them if that task fails or is cancelled: cancel, run or wait
    #[arg(long, value_name = "WHAT", default_value = "cancel")]
    on_failure: OnFailure,
    #[command(flatten)]
    pub(super) change: Change,
}

/// Have tasks wait for a task no more that they wait for; failed and cancelled ones will not when they are retried.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  \
    interval-queue tasks unlink --after 01957b6e-5e1a-7c3e-9a53-0c6e3a1f2b4d --tag import-7")]
pub(super) struct Unlink {
    /// The task that they wait for
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
