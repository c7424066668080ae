//! The command line of `schedule`.

use std::time::Duration;

use clap::{ArgGroup, Args, Subcommand, value_parser};
use interval_queue_documents::duration::{parse, positive};
use interval_queue_tasks::{Flow, Json, Key, Missed, Overlap, Schedule, Task, Template};

use crate::{
    add::{TASK_OPTIONS, TaskOptions, key, read_flow},
    args::{EXIT_CODES, Target},
    clock::time_of_day,
    exit::{Failure, chain},
};

const HELP: &str = "\
Examples:
  export INTERVAL_QUEUE_STORE=sqlite:/var/lib/jobs/queues.db
  export INTERVAL_QUEUE_NAME=jobs
  interval-queue schedule add nightly --cron '30 2 * * *' --zone Europe/Berlin
  interval-queue schedule add poll --every 5min --kind poll '{\"feed\": 7}'
  interval-queue schedule add clean --after-end 1h --kind clean
  interval-queue schedule list
  interval-queue schedule pause nightly
  interval-queue schedule run nightly              # add a task now
  interval-queue work --kind poll -- poll-feed     # on any number of hosts

A schedule is stored with its queue and needs no process of its own. When it is
due, the first worker of the queue to poll adds the task, even if it does not
handle that kind. Each instant adds one task.
";

const RULES: &str = "\
Examples:
  interval-queue schedule add nightly --cron '30 2 * * *' --zone Europe/Berlin
  interval-queue schedule add poll --every 5min --kind poll '{\"feed\": 7}'
  interval-queue schedule add clean --after-end 1h --kind clean
  interval-queue schedule add report --every 1d --flow report.json

Cron lines:
  A line has five fields: minute, hour, day of the month, month, day of the
  week. Each field is *, a number, the first three letters of an English name,
  a range as 9-17, one of these with a step as */5, or several with commas.
  Sunday is 0 or 7. If neither day field begins with *, one matching day field
  is enough. There are no seconds, no years and no names such as @daily.

  The times are on the clock of --zone. A time that this clock leaves out runs
  once, when the clock has jumped. A time that it shows twice runs once, the
  first time. A line that names every hour, as *, */1 or 0-23, follows the
  elapsed time instead.

Changes:
  `add` with the same options changes nothing, so every host may run it when it
  starts. With other options it changes the schedule for all, from now on; a
  paused schedule stays paused.
";

/// Add tasks again and again: at an interval, at the times of a cron line, or after the previous
/// task has ended.
#[derive(Debug, Args)]
#[command(name = "schedule", after_long_help = format!("{HELP}\n{EXIT_CODES}"))]
#[command(after_help = "`--help` shows examples and exit codes.")]
pub(crate) struct ScheduleArgs {
    #[command(subcommand)]
    pub(super) action: Action,
}

/// The commands of `schedule`.
#[derive(Debug, Subcommand)]
pub(super) enum Action {
    #[command(alias = "create")]
    Add(Box<Add>),
    #[command(alias = "ls")]
    List(List),
    /// Pause a schedule: it adds no tasks until it is resumed. Instants during the pause are not
    /// made up for.
    #[command(after_help = "Example:\n  interval-queue schedule pause nightly")]
    Pause(One),
    /// End the pause of a schedule. It continues with its next instant.
    #[command(after_help = "Example:\n  interval-queue schedule resume nightly")]
    Resume(One),
    /// Add a task of a schedule now, even if the schedule is paused or a task of it runs; print its
    /// id.
    #[command(
        after_help = "Example:\n  interval-queue tasks wait \"$(interval-queue schedule run nightly)\""
    )]
    #[command(alias = "trigger")]
    Run(One),
    /// Remove a schedule. The tasks that it has added stay.
    #[command(after_help = "Example:\n  interval-queue schedule remove nightly")]
    #[command(aliases = ["rm", "delete"])]
    Remove(One),
}

/// Store a schedule, or change the stored one of that name; print its next runs.
#[derive(Debug, Args)]
#[command(after_long_help = RULES, after_help = "`--help` shows examples and the syntax of cron lines.")]
#[command(group = ArgGroup::new("rule").args(["every", "cron", "after_end"]).required(true))]
pub(super) struct Add {
    #[command(flatten)]
    pub(super) target: Target,
    /// Add a task at this interval, 1s to ten years, counted from 1970 in UTC: 1h is on the hour
    #[arg(long, value_name = "DURATION", value_parser = positive)]
    every: Option<Duration>,
    /// With --every: shift the instants by this time. Default: 0s
    #[arg(long, value_name = "DURATION", requires = "every", conflicts_with_all = ["cron", "after_end"], value_parser = parse)]
    offset: Option<Duration>,
    /// Add a task at the times of a cron line of five fields, in the time zone --zone; see below
    #[arg(long, value_name = "LINE", requires = "zone", allow_hyphen_values = true, value_parser = cron)]
    cron: Option<String>,
    /// Time zone of --cron, by its IANA name: for example Europe/Berlin, or UTC
    #[arg(long, value_name = "ZONE", requires = "cron", conflicts_with_all = ["every", "after_end"])]
    zone: Option<String>,
    /// Add a task this long after the previous one has ended, however it ended; the first one at
    /// once
    #[arg(long, value_name = "DURATION", conflicts_with_all = ["missed", "overlap"], value_parser = positive)]
    after_end: Option<Duration>,
    /// Missed instants that add their tasks: none, the last one, or the last N, at most 1000
    ///
    /// An instant is missed if no worker polled when it came.
    #[arg(long, value_name = "none|last|N", default_value = "last", value_parser = missed)]
    missed: Missed,
    /// If the previous task has not ended at an instant: allow adds a task, skip adds none, keep
    /// adds one afterwards
    #[arg(long, value_name = "allow|skip|keep", default_value = "allow", value_parser = overlap)]
    overlap: Overlap,
    /// Store a new schedule paused; a stored schedule stays paused or not paused
    #[arg(long)]
    paused: bool,
    /// Print the next runs by the clock of this host, and store nothing
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Number of next runs to print, at most 1000
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = value_parser!(u16).range(..=1_000))]
    pub(super) next: u16,
    #[command(flatten)]
    task: TaskOptions,
    /// Add a flow at each instant, tasks that wait for each other, from this JSON file, or from
    /// stdin with -; `add --help` shows its syntax. At most 100 tasks
    #[arg(long, value_name = "FILE|-", conflicts_with_all = TASK_OPTIONS, conflicts_with = "payload")]
    flow: Option<String>,
    /// Name of the schedule: 1 to 200 bytes of printable text
    #[arg(value_name = "NAME", value_parser = key)]
    pub(super) name: Key,
    /// Payload of its tasks, a JSON value; not with --flow
    #[arg(value_name = "JSON", default_value = "null", allow_negative_numbers = true, value_parser = payload)]
    payload: Json,
}

/// List the schedules of a queue, with their next runs and last tasks.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  interval-queue schedule list
  interval-queue schedule list --json --next 10 | jq '[.name, .next_us]'")]
pub(super) struct List {
    #[command(flatten)]
    pub(super) target: Target,
    /// Number of next runs of each schedule with --json, at most 1000
    #[arg(long, value_name = "N", default_value_t = 1, requires = "json", value_parser = value_parser!(u16).range(..=1_000))]
    pub(super) next: u16,
    /// Print a JSON object per line for each schedule; `interval-queue schema tasks` describes its
    /// fields
    #[arg(long)]
    pub(super) json: bool,
}

/// A schedule.
#[derive(Debug, Args)]
pub(super) struct One {
    #[command(flatten)]
    pub(super) target: Target,
    /// Name of the schedule
    #[arg(value_name = "NAME", value_parser = key)]
    pub(super) name: Key,
}

/// Rejects an invalid line before a missing `--zone` is reported: the fix may be another line.
fn cron(line: &str) -> Result<String, String> {
    let schedule = Schedule::cron("cron", line, "UTC", Task::new("cron", &()));
    schedule.preview(time_of_day(), 0).map_err(|error| chain(&error))?;
    Ok(line.to_owned())
}

fn missed(text: &str) -> Result<Missed, String> {
    match (text, text.parse()) {
        ("none", _) => Ok(Missed::None),
        ("last", _) => Ok(Missed::Last),
        (_, Ok(most @ 1..=1_000)) => Ok(Missed::UpTo(most)),
        _ => Err("give none, last, or a number from 1 to 1000".into()),
    }
}

fn overlap(text: &str) -> Result<Overlap, String> {
    match text {
        "allow" => Ok(Overlap::Allow),
        "skip" => Ok(Overlap::Skip),
        "keep" => Ok(Overlap::Keep),
        _ => Err("give allow, skip or keep".into()),
    }
}

fn payload(text: &str) -> Result<Json, String> {
    Json::new(text).map_err(|error| error.to_string())
}

impl Add {
    pub(super) fn template(&self) -> Result<Template, Failure> {
        Ok(match &self.flow {
            Some(file) => read_flow(file)?.add_to(Flow::new()).into(),
            None => self.task.task(self.payload.clone()).into(),
        })
    }

    /// `None`: without a rule, which clap rejects before.
    pub(super) fn schedule(&self, template: Template) -> Option<Schedule> {
        let name = self.name.as_str();
        let schedule = match (self.every, &self.cron, self.after_end) {
            (Some(every), ..) => {
                Schedule::every(name, every, template).offset(self.offset.unwrap_or_default())
            }
            (_, Some(line), _) => Schedule::cron(name, line, self.zone.as_deref()?, template),
            (.., after) => Schedule::after_end(name, after?, template),
        };
        let schedule = schedule.missed(self.missed).overlap(self.overlap);
        Some(if self.paused { schedule.paused() } else { schedule })
    }

    pub(super) fn zone(&self) -> Option<&str> {
        self.zone.as_deref()
    }
}
