//! The command line of `work`.

use std::{ffi::OsString, path::PathBuf, time::Duration};

use clap::{Args, ValueEnum, value_parser};
use interval_queue::QueueName;
use interval_queue_documents::duration::{parse, positive};
use interval_queue_tasks::{Kind, Load, MAX_HELD, QueueOrder};

use crate::{
    add::kind,
    args::{EXIT_CODES, Target},
    exit::{Failure, USAGE},
    pace::PaceArgs,
};

const HELP: &str = "\
Examples:
  export INTERVAL_QUEUE_STORE=sqlite:/var/lib/jobs/queues.db
  export INTERVAL_QUEUE_NAME=mail
  interval-queue work -- send-mail
  interval-queue work --kind mail --kind digest --jobs 4 -- send-mail
  interval-queue work --every 250ms -- curl -sS --json @- https://example.com/1
  interval-queue work --jobs 8 --capacity 16 --at-load 0.8=5 -- render
  interval-queue work --until-empty -- sh -c 'jq .n | resize'
  # One program for each kind, named as the kind:
  interval-queue work --dir /usr/lib/mail/tasks
  # A program that is kept, and gets one task after another:
  interval-queue work --lines --jobs 4 -- python3 worker.py
  # Tasks of `bulk` when `urgent` has none:
  interval-queue work --jobs 8 --queue urgent --also bulk -- send-mail

Input of CMD:
  standard input                  the payload, as JSON
  INTERVAL_QUEUE_TASK_ID          the id of the task
  INTERVAL_QUEUE_TASK_QUEUE       its queue
  INTERVAL_QUEUE_TASK_KIND        its kind
  INTERVAL_QUEUE_TASK_KEY         its key, if it has one
  INTERVAL_QUEUE_TASK_ATTEMPT     1 at first; one more after each failure
  INTERVAL_QUEUE_TASK_TOKEN       rises with each run of the task, as N.M: to
                                  reject a lower one, compare N, then M
  INTERVAL_QUEUE_TASK_DEADLINE    seconds since 1970, if it has a deadline
  INTERVAL_QUEUE_TASK_SCHEDULED   seconds since 1970: the instant of its
                                  schedule, if a schedule added it
  INTERVAL_QUEUE_TASK_INPUTS      a file with the results of its upstreams:
    {\"name\": {\"task\": ID, \"state\": \"done\", \"result\": …}, …}

  TRACEPARENT                     the W3C trace context in which it was added,
                                  if one was stored
  INTERVAL_QUEUE_TASK_REPLY       a file into which CMD may write lines, see
                                  below; not set without a directory for
                                  temporary files

Result of the task, by the exit code of CMD:
  0                 done; stdout is the result: JSON or any text, up to 128 KiB
  64, 65, 77, 78    failed for good, without a retry
  any other code, a signal, --timeout
                    failed, and retried as its policy sets: by default after
                    10 s, then twice as long each time, five attempts in all
  The end of stderr is kept as the error; all of it is printed to stderr, too.
  If this host lacks processes or open files, the task is given back, and the
  run does not count as a failure. With --dir, the kind of a program that
  cannot be executed is set aside until its file changes.

Replies:
  CMD may append lines of JSON to the file INTERVAL_QUEUE_TASK_REPLY while it
  runs. The last line that ends the run replaces the result by the exit code:
    {\"progress\": [3, 10, \"page 3\"]}   done, total and a text, for `tasks show`
    {\"retry_after\": \"30s\"}            run it again then; this is no failure
    {\"release\": true}                 give it back; this is no failure
    {\"done\": …}  {\"failed\": \"why\"}  {\"failed\": \"why\", \"permanent\": true}
  \"retry_after\" and \"release\" may have a \"why\". An invalid line fails the run.

Lines:
  With --lines, CMD reads a line for each task, and answers with one of the
  lines above and the \"id\" of the run. It may send progress before.
    {\"id\": 7, \"task\": ID, \"queue\": \"mail\", \"kind\": \"default\", \"attempt\": 1,
     \"token\": \"1.1\", \"payload\": …}
    {\"id\": 7, \"done\": \"sent\"}
  \"key\", \"deadline\", \"scheduled\" and \"inputs\" are there if the task has them.
  {\"id\": 7, \"cancel\": true} asks to stop: CMD has 1 s to answer, then it is
  ended. If CMD ends, or prints anything else, its task has failed once, and CMD
  is started again, with pauses from 100 ms to 30 s. At the end of its input CMD
  has 2 s to end.

Processes:
  A guard, a small process, runs with each CMD. If this program is killed, even
  with SIGKILL, or if the store does not answer it for most of its lease, the
  guard ends CMD and all that it has started: SIGTERM, 2 s later SIGKILL. So
  CMD has ended before another worker can run the task. Processes that CMD
  leaves running are ended before its task ends: its process group and, on
  Linux, its daemons. Processes that another service runs for CMD are not
  ended.

Signals:
  After SIGINT, SIGTERM, SIGHUP or SIGQUIT nothing more starts. Running
  commands have --grace to end. Then they are ended. Their tasks are given
  back, or failed if they have a single attempt. A second signal does that at
  once.
";

/// Run CMD for each stored task: the payload is its input, its output is the result.
///
/// Any number of workers on any number of hosts share the tasks of a queue. A worker leases the
/// most urgent ready tasks. If a worker is killed, its tasks run again after its lease.
#[derive(Debug, Args)]
#[command(name = "work", after_long_help = format!("{HELP}\n{EXIT_CODES}"))]
#[command(after_help = "`--help` shows examples, the environment of CMD and exit codes.")]
pub(crate) struct WorkArgs {
    #[command(flatten)]
    pub(crate) target: Target,
    #[command(flatten)]
    pub(crate) pace: PaceArgs,
    /// Also run tasks of this queue of the same store, within --jobs; may be given several times
    ///
    /// A task that waits for a slot takes up a job. So give one more job for each queue with a
    /// rate.
    #[arg(long, value_name = "NAME", allow_hyphen_values = true)]
    pub(crate) also: Vec<QueueName>,
    /// Which queue with ready tasks is served next; with --also
    #[arg(long, value_enum, value_name = "HOW", default_value_t = QueueOrderArg::InOrder, requires = "also")]
    pub(crate) queue_order: QueueOrderArg,
    /// Directory with one program per kind, named as the kind, instead of CMD
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    pub(crate) dir: Option<PathBuf>,
    /// Kind of tasks to run; may be given several times. Default: `default`, with --dir each kind
    /// that has a program
    #[arg(long = "kind", value_name = "KIND", value_parser = kind)]
    pub(crate) kinds: Vec<Kind>,
    /// Commands of this process that run at once, at most
    #[arg(short, long, alias = "concurrency", short_alias = 'c', value_name = "N", default_value_t = 1)]
    #[arg(value_parser = value_parser!(u32).range(1..=i64::from(MAX_HELD)))]
    pub(crate) jobs: u32,
    /// Maximum sum of the weights that run at once; a heavier task runs alone. Default: unlimited
    ///
    /// The weight of a task is what `add --weight` has set. --jobs limits the number of commands,
    /// too, so raise it.
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..))]
    pub(crate) capacity: Option<u32>,
    /// Above this load take only tasks of this priority or higher, or `none`; may be given several
    /// times. Linux only
    ///
    /// The load is the load average of one minute, divided by the number of processors. Default: no
    /// limit by load.
    #[arg(long, value_name = "LOAD=PRIORITY|none", value_parser = level)]
    pub(crate) at_load: Vec<Level>,
    /// Keep CMD: start it up to --jobs times, and give it one task after another as lines of JSON on
    /// stdin, which it answers by lines on stdout; see below. Default: a process per task
    #[arg(long, conflicts_with_all = ["dir", "also"])]
    pub(crate) lines: bool,
    /// Do not store what CMD prints on stderr as the log of its task: 64 lines of a run, of 500
    /// characters each. Default: stored, `tasks show` prints it
    #[arg(long)]
    pub(crate) no_log: bool,
    /// End when all tasks of these kinds have ended. Default: run until a signal
    #[arg(long)]
    pub(crate) until_empty: bool,
    /// Start nothing more after N tasks, and end when the running ones have ended, within a day.
    /// Default: no limit
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..))]
    pub(crate) max_tasks: Option<u64>,
    /// Start nothing more after this time, and end when the running tasks have ended, within a day.
    /// Default: no limit
    #[arg(long = "for", value_name = "DURATION", allow_hyphen_values = true, value_parser = positive)]
    pub(crate) run_for: Option<Duration>,
    /// Time until the tasks of this process are retried elsewhere if it stops polling; 1s to 1day
    #[arg(long, value_name = "DURATION", default_value = "30s", allow_hyphen_values = true, value_parser = positive)]
    pub(crate) lease: Duration,
    /// Time that running commands have to end after a first signal
    #[arg(long, value_name = "DURATION", default_value = "10s", allow_hyphen_values = true, value_parser = parse)]
    pub(crate) grace: Duration,
    /// End a command after this time: SIGTERM, 3 s later SIGKILL; it counts as a failure. Default:
    /// never
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true, value_parser = positive)]
    pub(crate) timeout: Option<Duration>,
    /// Name of this worker in `tasks`. Default: CMD pid N, or DIR pid N
    #[arg(long, value_name = "TEXT", value_parser = crate::args::label)]
    pub(crate) label: Option<String>,
    /// The command and its arguments. A `--` before it is optional
    #[arg(trailing_var_arg = true, required_unless_present = "dir", value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}

/// Which queue is served next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum QueueOrderArg {
    /// The first queue that has ready tasks: --queue, then each --also in its order
    InOrder,
    /// Each queue in turn
    RoundRobin,
    /// A random queue
    Shuffled,
}

impl From<QueueOrderArg> for QueueOrder {
    fn from(queue_order: QueueOrderArg) -> Self {
        match queue_order {
            QueueOrderArg::InOrder => Self::InOrder,
            QueueOrderArg::RoundRobin => Self::RoundRobin,
            QueueOrderArg::Shuffled => Self::Shuffled,
        }
    }
}

/// Above the load `above`, only tasks of this priority or higher are taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Level {
    above: f64,
    /// `None`: no task is taken.
    at_least: Option<i32>,
}

fn level(text: &str) -> Result<Level, String> {
    let parts = text.split_once('=').and_then(|(above, at_least)| {
        let at_least = if at_least == "none" { None } else { Some(at_least.parse().ok()?) };
        Some(Level { above: above.parse().ok()?, at_least })
    });
    parts.ok_or_else(|| format!("{} is no load level: write 0.8=5 or 0.95=none", text.escape_debug()))
}

impl WorkArgs {
    /// `None`: it takes tasks at any load.
    pub(crate) fn load(&self) -> Option<Load> {
        let with = |load: Load, level: &Level| match level.at_least {
            Some(priority) => load.above(level.above, priority),
            None => load.nothing_above(level.above),
        };
        (!self.at_load.is_empty()).then(|| self.at_load.iter().fold(Load::system(), with))
    }

    /// `--queue` first.
    pub(crate) fn queues(&self) -> Result<Vec<&QueueName>, Failure> {
        if !self.also.is_empty() && self.pace.pace().is_some() {
            let text = "a rate belongs to one queue: with --also, run `interval-queue set` for each queue";
            return Err(Failure::new(USAGE, text));
        }
        if !self.also.is_empty() && self.capacity.is_some() {
            let text = "--capacity belongs to one queue: leave out --also, or run a `work` for each queue";
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
