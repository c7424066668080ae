//! What the command line of `schedule` says.

use std::time::Duration;

use clap::{ArgGroup, Args, Subcommand, value_parser};
use interval_queue::task_contract::{Json, Key};
use interval_queue_tasks::{Missed, Overlap, Schedule};

use crate::{
    add::{TaskOptions, key},
    args::{EXIT_CODES, Target},
    duration::{parse, positive},
};

const HELP: &str = "\
Examples:
  export INTERVAL_QUEUE_STORE=sqlite:/var/lib/jobs/queues.db INTERVAL_QUEUE_NAME=jobs
  interval-queue schedule add nightly --cron '30 2 * * *' --zone Europe/Berlin --kind backup
  interval-queue schedule add poll --every 5min --overlap skip --kind poll '{\"feed\": 7}'
  interval-queue schedule add sweep --after-end 1h --kind sweep
  interval-queue schedule list
  interval-queue schedule pause nightly
  interval-queue schedule run nightly              # now, beside the schedule
  interval-queue work --kind backup -- backup      # on as many hosts as you like

A schedule is stored with its queue. It needs no process of its own: whichever worker of the queue
steps first, of whatever kinds, makes the task of an instant, and each instant makes one task.
";

const RULES: &str = "\
Examples:
  interval-queue schedule add nightly --cron '30 2 * * *' --zone Europe/Berlin --dry-run
  interval-queue schedule add poll --every 5min --overlap skip --kind poll '{\"feed\": 7}'
  interval-queue schedule add sweep --after-end 1h --kind sweep --max-attempts 1

A cron line:
  minute, hour, day of the month, month, day of the week; each is *, a number, the first three
  letters of an English name, a range as 9-17, one of these with a step as */5, or several with
  commas. Sunday is 0 or 7. If neither day begins with *, one of them is enough.
  It goes by the clock of its zone. What falls into an hour that this clock leaves out runs once,
  when the clock has jumped; what falls into one that it shows twice runs once, the first time.
  A line that names every hour, as *, */1 or 0-23, goes by the time that passes.

The same said again changes nothing, so that whatever starts on a host may say it. Said otherwise
it changes the schedule for all, from now on; one that is paused stays so.
";

/// Make tasks again and again: every so often, by a cron line, or so long after the one before has ended.
#[derive(Debug, Args)]
#[command(name = "schedule", after_long_help = format!("{HELP}\n{EXIT_CODES}"))]
#[command(after_help = "`--help` shows examples and exit codes.")]
pub(crate) struct ScheduleArgs {
    #[command(subcommand)]
    pub(super) action: Action,
}

/// What is done with schedules.
#[derive(Debug, Subcommand)]
pub(super) enum Action {
    Add(Box<Add>),
    List(List),
    /// Make no task of a schedule any more, until it is resumed. Instants that come meanwhile make none.
    #[command(after_help = "Example:\n  interval-queue schedule pause nightly")]
    Pause(One),
    /// End the pause of a schedule. It goes on with its next instant.
    #[command(after_help = "Example:\n  interval-queue schedule resume nightly")]
    Resume(One),
    /// Add a task as a schedule would make it, now, whether it is paused and whatever runs; print its id.
    #[command(
        after_help = "Example:\n  interval-queue tasks wait \"$(interval-queue schedule run nightly)\""
    )]
    Run(One),
    /// Remove a schedule. The tasks that it has made stay.
    #[command(after_help = "Example:\n  interval-queue schedule remove nightly")]
    Remove(One),
}

/// Store a schedule, or change the one of its name; print its next runs.
#[derive(Debug, Args)]
#[command(after_long_help = RULES, after_help = "`--help` shows examples and what a cron line says.")]
#[command(group = ArgGroup::new("rule").args(["every", "cron", "after_end"]).required(true))]
pub(super) struct Add {
    #[command(flatten)]
    pub(super) target: Target,
    /// A task every so often, over all workers: 1s to ten years. Every 1h is on the hour, in UTC
    #[arg(long, value_name = "DURATION", value_parser = positive)]
    every: Option<Duration>,
    /// With --every: so much later
    #[arg(long, value_name = "DURATION", requires = "every", conflicts_with_all = ["cron", "after_end"], value_parser = parse)]
    offset: Option<Duration>,
    /// A task at the times of a cron line of five fields, see below
    #[arg(long, value_name = "LINE", requires = "zone", allow_hyphen_values = true)]
    cron: Option<String>,
    /// The time zone of --cron, by its IANA name: Europe/Berlin, say, or UTC
    #[arg(long, value_name = "ZONE", requires = "cron", conflicts_with_all = ["every", "after_end"])]
    zone: Option<String>,
    /// A task so long after the one before has ended, however it ended; the first one at once
    #[arg(long, value_name = "DURATION", conflicts_with_all = ["missed", "overlap"], value_parser = positive)]
    after_end: Option<Duration>,
    /// Which instants make their tasks that came while no worker was there: none, the last one, or the last N
    #[arg(long, value_name = "none|last|N", default_value = "last", value_parser = missed)]
    missed: Missed,
    /// What happens at an instant that comes while the task before has not ended: allow makes a task all the same, skip
    /// makes none, keep makes one when that one has ended
    #[arg(long, value_name = "allow|skip|keep", default_value = "allow", value_parser = overlap)]
    overlap: Overlap,
    /// Let it make nothing until it is resumed. One that is stored already stays as it is in this
    #[arg(long)]
    paused: bool,
    /// Print its next runs by the clock of this host, and store nothing
    #[arg(long)]
    pub(super) dry_run: bool,
    /// How many next runs are printed
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = value_parser!(u16).range(..=1_000))]
    pub(super) next: u16,
    #[command(flatten)]
    task: TaskOptions,
    /// Its name: 1 to 200 bytes of printable text
    #[arg(value_name = "NAME", value_parser = key)]
    pub(super) name: Key,
    /// The payload of its tasks
    #[arg(value_name = "JSON", default_value = "null", allow_negative_numbers = true, value_parser = payload)]
    payload: Json,
}

/// List the schedules of a queue: when each runs next, and what became of its last task.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  interval-queue schedule list
  interval-queue schedule list --json --next 10 | jq -r 'select(.name == \"nightly\").next_us[]'")]
pub(super) struct List {
    #[command(flatten)]
    pub(super) target: Target,
    /// How many next runs of each are told with --json
    #[arg(long, value_name = "N", default_value_t = 1, requires = "json", value_parser = value_parser!(u16).range(..=1_000))]
    pub(super) next: u16,
    /// Print a JSON object for each, one a line; `interval-queue schema tasks` describes its fields
    #[arg(long)]
    pub(super) json: bool,
}

/// Which schedule.
#[derive(Debug, Args)]
pub(super) struct One {
    #[command(flatten)]
    pub(super) target: Target,
    /// Its name
    #[arg(value_name = "NAME", value_parser = key)]
    pub(super) name: Key,
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
    /// What is to be stored; none: nothing says when, which clap does not let through.
    pub(super) fn schedule(&self) -> Option<Schedule> {
        let (name, task) = (self.name.as_str(), self.task.template(self.payload.clone()));
        let schedule = match (self.every, &self.cron, self.after_end) {
            (Some(every), ..) => Schedule::every(name, every, task).offset(self.offset.unwrap_or_default()),
            (_, Some(line), _) => Schedule::cron(name, line, self.zone.as_deref()?, task),
            (.., after) => Schedule::after_end(name, after?, task),
        };
        let schedule = schedule.missed(self.missed).overlap(self.overlap);
        Some(if self.paused { schedule.paused() } else { schedule })
    }

    /// The zone on whose clock its runs are shown.
    pub(super) fn zone(&self) -> Option<&str> {
        self.zone.as_deref()
    }
}
