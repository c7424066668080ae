//! What the command line of `work` says.

use std::{ffi::OsString, path::PathBuf, time::Duration};

use clap::{Args, ValueEnum, value_parser};
use interval_queue::{
    QueueName,
    task_contract::{Kind, MAX_HELD},
};
use interval_queue_tasks::{Load, Turns};

use crate::{
    add::kind,
    args::{EXIT_CODES, Target},
    duration::{parse, positive},
    exit::{Failure, USAGE},
    pace::PaceArgs,
};

const HELP: &str = "\
Examples:
  export INTERVAL_QUEUE_STORE=sqlite:/var/lib/jobs/queues.db INTERVAL_QUEUE_NAME=mail
  interval-queue work -- send-mail
  interval-queue work --kind mail --kind digest --jobs 4 --timeout 1min -- send-mail
  interval-queue work --every 250ms -- sh -c 'curl -sS --json @- https://api.example.com/1'
  interval-queue work --jobs 8 --capacity 16 --at-load 0.8=5 --at-load 0.95=none -- render
  interval-queue work --until-empty -- sh -c 'jq .n | resize'
  interval-queue work --dir /usr/lib/mail/tasks       # a program for each kind, called as that
  interval-queue work --jobs 8 --queue urgent --also bulk -- send-mail   # bulk when urgent is empty

What CMD gets:
  its standard input              the payload, JSON
  INTERVAL_QUEUE_TASK_ID          the id of the task
  INTERVAL_QUEUE_TASK_QUEUE       its queue
  INTERVAL_QUEUE_TASK_KIND        its kind
  INTERVAL_QUEUE_TASK_KEY         its key, if it has one
  INTERVAL_QUEUE_TASK_ATTEMPT     1 at first; one more after each failure
  INTERVAL_QUEUE_TASK_TOKEN       rises with each run of the task, as N.M; what it writes to
                                  can refuse a lower one, number by number
  INTERVAL_QUEUE_TASK_DEADLINE    in seconds since 1970, if it has one
  INTERVAL_QUEUE_TASK_SCHEDULED   the instant that it stands for, in seconds since 1970, if a
                                  schedule has made it: earlier than now, by much if no
                                  worker was there
  INTERVAL_QUEUE_TASK_INPUTS      a file with the results of the tasks it waited for, if it
                                  did: {\"name\": {\"task\": ID, \"state\": \"done\", \"result\": …}, …}

What becomes of the task:
  0                 done; stdout is its result: JSON, or any text; at most 128 KiB
  64, 65, 77, 78    failed for good: another attempt would end in the same way
  any other code, 75 among them, a signal, --timeout
                    failed, and tried again as its policy says: 10 s later, then twice as
                    long each time, five times in all
  The end of stderr is kept as its error; all of it goes to the stderr of this program, too.
  What this host cannot run, for lack of processes or files, is given back and counts nothing.
  With --dir a program that cannot be used sets its kind aside until its file changes.
  What CMD leaves running when it ends is ended, too: its process group and, on Linux, daemons.

A guard, a small process, stands beside each CMD. If this program is killed, even with
SIGKILL, or is not heard of for most of its lease, it ends CMD and all that it has started:
SIGTERM, 2 s later SIGKILL. So the task never runs twice at the same time. What another
service runs for CMD is not ended; elsewhere than on Linux, neither are daemons.

Interruption:
  SIGINT, SIGTERM, SIGHUP or SIGQUIT: nothing more is started; what runs may end within
  --grace, then it is ended, and its task is given back. A second one: at once.
";

/// Run CMD for each stored task, with its payload as input and its result as output.
///
/// Any number of workers on any number of hosts share the tasks of a queue. A worker takes the most urgent ones that
/// are ready; what a worker had that was killed runs again after its lease.
#[derive(Debug, Args)]
#[command(name = "work", after_long_help = format!("{HELP}\n{EXIT_CODES}"))]
#[command(after_help = "`--help` shows examples, the environment of CMD and exit codes.")]
pub(crate) struct WorkArgs {
    #[command(flatten)]
    pub(crate) target: Target,
    #[command(flatten)]
    pub(crate) pace: PaceArgs,
    /// Other queues in the same place whose tasks it runs, too, within --jobs; may be given several times. A task that
    /// waits for its slot of a pace takes up a job
    #[arg(long, value_name = "NAME", allow_hyphen_values = true)]
    pub(crate) also: Vec<QueueName>,
    /// Which queue is served next, of those that have something
    #[arg(long, value_enum, value_name = "HOW", default_value_t = TurnsArg::InOrder, requires = "also")]
    pub(crate) turns: TurnsArg,
    /// A directory of programs instead of CMD: each runs the tasks of the kind that it is called as
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    pub(crate) dir: Option<PathBuf>,
    /// The kind of tasks that CMD is for; may be given several times. Default: default, or with --dir all that have a
    /// program
    #[arg(long = "kind", value_name = "KIND", value_parser = kind)]
    pub(crate) kinds: Vec<Kind>,
    /// How many commands of this process run at once
    #[arg(short, long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = value_parser!(u32).range(1..=i64::from(MAX_HELD)))]
    pub(crate) jobs: u32,
    /// How heavy the tasks may be together that run at once, by their `--weight`; one that is heavier runs alone. Give
    /// --jobs, too, for the most that run
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..))]
    pub(crate) capacity: Option<u32>,
    /// Above this load of the system take only tasks with at least this priority, or none; may be given several times.
    /// 1 is as many processes as processors, on the average of a minute
    #[arg(long, value_name = "LOAD=PRIORITY|none", value_parser = level)]
    pub(crate) at_load: Vec<Level>,
    /// End when no task of these kinds is left that has not ended; without, it goes on for ever
    #[arg(long)]
    pub(crate) until_empty: bool,
    /// How long tasks stay with this process if it is not heard of; 1s to 1day
    #[arg(long, value_name = "DURATION", default_value = "30s", allow_hyphen_values = true, value_parser = positive)]
    pub(crate) lease: Duration,
    /// How long commands may go on after a first signal
    #[arg(long, value_name = "DURATION", default_value = "10s", allow_hyphen_values = true, value_parser = parse)]
    pub(crate) grace: Duration,
    /// End a command after this time: SIGTERM, 3 s later SIGKILL; it has failed then. Default: never
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true, value_parser = positive)]
    pub(crate) timeout: Option<Duration>,
    /// What `tasks` calls this process. Default: CMD pid N, or DIR pid N
    #[arg(long, value_name = "TEXT", value_parser = crate::args::label)]
    pub(crate) label: Option<String>,
    /// The command and its arguments. A `--` may stand before it
    #[arg(trailing_var_arg = true, required_unless_present = "dir", value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}

/// Which queue is served next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TurnsArg {
    /// The first one: --queue, then those of --also in their order
    InOrder,
    /// Each in its turn
    RoundRobin,
    /// One at random
    Shuffled,
}

impl From<TurnsArg> for Turns {
    fn from(turns: TurnsArg) -> Self {
        match turns {
            TurnsArg::InOrder => Self::InOrder,
            TurnsArg::RoundRobin => Self::RoundRobin,
            TurnsArg::Shuffled => Self::Shuffled,
        }
    }
}

/// Above which load only which priority is taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Level {
    above: f64,
    /// None: nothing is taken.
    at_least: Option<i32>,
}

fn level(text: &str) -> Result<Level, String> {
    let parts = text.split_once('=').and_then(|(above, at_least)| {
        let at_least = if at_least == "none" { None } else { Some(at_least.parse().ok()?) };
        Some(Level { above: above.parse().ok()?, at_least })
    });
    parts.ok_or_else(|| format!("{} is no level: write for example 0.8=5, or 0.95=none", text.escape_debug()))
}

impl WorkArgs {
    /// What it takes under load; none: everything.
    pub(crate) fn load(&self) -> Option<Load> {
        let with = |load: Load, level: &Level| match level.at_least {
            Some(priority) => load.above(level.above, priority),
            None => load.nothing_above(level.above),
        };
        (!self.at_load.is_empty()).then(|| self.at_load.iter().fold(Load::system(), with))
    }

    /// The queues, the first one first.
    pub(crate) fn queues(&self) -> Result<Vec<&QueueName>, Failure> {
        if !self.also.is_empty() && self.pace.pace().is_some() {
            let text = "a pace is that of one queue: give each its own by `interval-queue set`, and leave it out here";
            return Err(Failure::new(USAGE, text));
        }
        if !self.also.is_empty() && self.capacity.is_some() {
            let text =
                "a capacity is that of one queue: leave --capacity out, or run a `work` for each queue";
            return Err(Failure::new(USAGE, text));
        }
        let mut queues = vec![&self.target.queue];
        for queue in &self.also {
            if queues.contains(&queue) {
                return Err(Failure::new(
                    USAGE,
                    format!("queue {:?} is named twice: name it once", queue.as_str()),
                ));
            }
            queues.push(queue);
        }
        Ok(queues)
    }
}
