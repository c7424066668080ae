//! The command line and its help texts.

use std::{ffi::OsString, path::Path, time::Duration};

use clap::{ArgGroup, Args, Parser, Subcommand, value_parser};
use interval_queue::{Label, MAX_WEIGHT, MaxRunning, QueueName};
use interval_queue_documents::duration::{interval, parse, positive};
use interval_queue_tasks::{Key, Kind, State as TaskState};

use crate::{
    add::{key, kind},
    each::Each,
    pace::PaceArgs,
};

const EXAMPLES: &str = "\
Examples:
  export INTERVAL_QUEUE_STORE=sqlite:/var/lib/jobs/queues.db
  export INTERVAL_QUEUE_NAME=mail
  interval-queue add '{\"to\": \"ada@example.com\"}'
  interval-queue work -- send-mail
  interval-queue tasks
  interval-queue run --queue api --every 250ms -- curl -sS https://example.com
  interval-queue each --queue api --every 250ms -- curl -sSO {} < urls
  interval-queue set --queue api --rate 5/s --burst 20 --rate 10000/day
  interval-queue hold 30s --queue api
  interval-queue status --queue api

Stores:
  sqlite:/var/lib/jobs/queues.db       processes of one host
  dir:/var/lib/jobs, or ./jobs         processes of one host; a task is a file
  file:/var/lib/jobs/queues.json       processes of one host; rates, no tasks
  postgres://user@db.internal/jobs     processes on many hosts
  redis://cache.internal               processes on many hosts; also rediss://,
                                       redis+unix://, redis+sentinel:// and
                                       redis+cluster://
  Parameters follow a `?`, as in ?durability=relaxed&lock_timeout=1s. The error
  for an unknown parameter lists the known ones.

Durations are numbers with units: 500us, 250ms, 1.5s, 2min, 1h, 7days, 2weeks,
1month. Rates are numbers per unit: 5/s, 300/min, 10000/day, 1/250ms.
";

pub(crate) const EXIT_CODES: &str = "\
Exit codes:
    0      done; `run` exits with the code of CMD
    1      tasks watch --once: a condition holds
   64      the command line cannot be used
   65      stored data is damaged, foreign or from a newer version;
           add: a payload or the document of a flow is invalid
   66      there is no such queue, database or directory;
           tasks: there is no such task, or the selector matches no task;
           schedule: there is no such schedule
   69      the store cannot be reached, or did not answer in time
   70      an error of this program
   71      the operating system refused something
   73      no room is left where the store is
   74      the output cannot be written, or the items cannot be read; a closed
           stdout (>&-) counts as /dev/null
   75      run, each: not started within --start-within; delete: the queue is
           in use; add --on-conflict refuse: another task holds the unique
           name; tasks purge, tag, link, retry, copy, move: some tasks were
           left unchanged, and stderr names the reason
   77      not permitted
   78      the store cannot do what is needed, for example lock
  123      each: CMD failed for some items; tasks wait: some tasks failed or
           were cancelled
  124      run: CMD ran into --timeout; tasks wait: not ended within --timeout
  126      CMD cannot be executed
  127      CMD was not found
  128+N    run: CMD was killed by signal N; each, work: ended by signal N";

const RUN_EXAMPLES: &str = "\
Examples:
  # Four calls per second, over all shells, hosts and cron jobs. The
  # environment sets the store and the queue:
  interval-queue run --every 250ms -- curl -sS https://api.example.com/1

  # In a crontab that sets INTERVAL_QUEUE_STORE. Give up if the queue is long:
  0 * * * * interval-queue run --queue mail --start-within 10min -- send-digest

  # At most three backups at once, started a minute apart. CMD begins at the
  # first word that is no option, as with env, and keeps its own options:
  interval-queue run --every 1min --max-running 3 backup --verbose /srv

How CMD runs:
  CMD is looked up on PATH before a ticket is taken, so a mistyped name costs
  no slot. Without a running limit and --timeout this process becomes CMD
  (exec). With one of them CMD is a child, and this process stays: it counts
  CMD as running and ends it at --timeout. It forwards SIGHUP, SIGINT, SIGQUIT,
  SIGTERM, SIGUSR1 and SIGUSR2 that a process sends to it. A signal during the
  wait returns the ticket and ends this process as it would end CMD.

  CMD inherits the environment, also a password in INTERVAL_QUEUE_STORE, so
  that it can use the queue itself. To hide it from CMD, run
  interval-queue run -- env -u INTERVAL_QUEUE_STORE CMD
";

/// A task queue and a distributed rate limiter, for any language.
///
/// It stores tasks and runs a command for each, with retries, cron schedules and workflows. It also
/// starts commands from any number of shells, cron jobs and hosts at one shared rate. All processes
/// that name the same queue in the same store work together. There is no server besides the store:
/// SQLite, PostgreSQL, Redis or files.
#[derive(Debug, Parser)]
#[command(name = "interval-queue", version, max_term_width = 120, after_long_help = format!("{EXAMPLES}\n{EXIT_CODES}"))]
#[command(after_help = "`--help` shows examples, units and exit codes.")]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(Run),
    Each(Each),
    Turns(crate::turns::Turns),
    #[command(aliases = ["enqueue", "push", "submit", "put", "insert"])]
    Add(crate::add::AddArgs),
    #[command(aliases = ["worker", "run-worker", "consume"])]
    Work(crate::work::WorkArgs),
    #[command(aliases = ["task", "jobs", "job"])]
    Tasks(crate::tasks::TasksArgs),
    #[command(aliases = ["schedules", "cron"])]
    Schedule(crate::schedule::ScheduleArgs),
    #[command(aliases = ["stats", "info"])]
    Status(Status),
    #[command(aliases = ["top", "monitor"])]
    Watch(crate::watch::Watch),
    #[command(aliases = ["ls", "queues"])]
    List(List),
    /// Pause a queue, or a kind or key of its tasks: nothing more starts until `resume`.
    ///
    /// Running commands continue, and waiting processes keep their tickets. A start that was
    /// granted before the pause can still come up to one second later. A queue that does not exist
    /// is created, paused.
    #[command(after_help = "Examples:\n  interval-queue pause --store redis://localhost --queue api\n  \
        interval-queue pause --kind mail --key customer-7     # a kind and a key")]
    #[command(alias = "suspend")]
    Pause(Halt),
    /// End a pause of a queue, or of a kind or key of its tasks.
    ///
    /// Waiting processes start again within about a second.
    #[command(after_help = "Examples:\n  interval-queue resume --store redis://localhost --queue api\n  \
        interval-queue resume --kind mail --key customer-7")]
    #[command(alias = "unpause")]
    Resume(Halt),
    Hold(Hold),
    Set(Set),
    /// Repair the rate limit of a queue: end its pause and hold, drop far reservations.
    ///
    /// Tickets, rates and the running limit stay. The list of processes is cleared; a waiting
    /// process appears in it again when it next contacts the store. A pause of stored tasks stays:
    /// only `resume` ends it.
    #[command(after_help = "Example:\n  interval-queue reset --store redis://localhost --queue api")]
    Reset(Target),
    #[command(aliases = ["rm", "remove"])]
    Delete(crate::delete::Delete),
    Prune(crate::delete::Prune),
    Migrate(crate::migrate::Migrate),
    Schema(crate::documents::Schema),
    #[command(alias = "completion")]
    Completions(crate::documents::Completions),
    #[command(name = "man", alias = "manual")]
    Manual(crate::documents::Manual),
}

/// A store of queues.
#[derive(Clone, Debug, Args)]
pub(crate) struct StoreArgs {
    /// The store: sqlite:PATH, dir:PATH, file:PATH, redis://HOST or postgres://HOST/DATABASE
    #[arg(id = "store", long = "store", alias = "url", value_name = "URL", env = "INTERVAL_QUEUE_STORE")]
    #[arg(hide_env_values = true, value_parser = store_url)]
    pub(crate) url: String,
}

/// One queue.
#[derive(Clone, Debug, Args)]
pub(crate) struct Target {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// The queue: 1 to 200 bytes of printable text
    #[arg(long, value_name = "NAME", env = "INTERVAL_QUEUE_NAME", allow_hyphen_values = true)]
    pub(crate) queue: QueueName,
}

/// A queue, and the options of this process as one of its shards.
#[derive(Clone, Debug, Args)]
pub(crate) struct Shard {
    #[command(flatten)]
    pub(crate) target: Target,
    #[command(flatten)]
    pub(crate) pace: PaceArgs,
    /// Set how many commands may run at once, over all processes, or none. Default: the stored
    /// limit
    ///
    /// A new queue has no limit. A stored limit stays, and a warning is printed, unless --override
    /// is given. If this program is killed with SIGKILL, CMD continues and counts as running until
    /// the lease ends (three intervals, at least 5 s, at most 5 min).
    #[arg(long, value_name = "N|none", allow_hyphen_values = true, value_parser = max_running)]
    pub(crate) max_running: Option<MaxRunning>,
    /// Replace the stored rate and running limit, for all processes. Default: keep what is stored
    #[arg(long = "override")]
    pub(crate) overrides: bool,
    /// Intervals of the rate that one start takes, 1 to 1000000
    #[arg(long, value_name = "N", default_value_t = 1, allow_hyphen_values = true, value_parser = value_parser!(u32).range(1..=i64::from(MAX_WEIGHT)))]
    pub(crate) weight: u32,
    /// Name of this process in `status`. Default: CMD pid N, or turns pid N
    #[arg(long, value_name = "TEXT", value_parser = label)]
    pub(crate) label: Option<String>,
}

/// Wait for a slot, then become CMD: its input, output, signals and exit code.
#[derive(Debug, Args)]
#[command(after_long_help = format!("{RUN_EXAMPLES}\n{EXIT_CODES}"))]
#[command(after_help = "`--help` shows examples and exit codes.")]
pub(crate) struct Run {
    #[command(flatten)]
    pub(crate) shard: Shard,
    /// Give up with exit code 75 if CMD has not started within this time; 0s: now or never.
    /// Default: wait
    ///
    /// With it, `run` also retries until then if the store cannot be reached at first.
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true, value_parser = parse)]
    pub(crate) start_within: Option<Duration>,
    /// End CMD after this time: SIGTERM, 5 s later SIGKILL; exit code 124. Default: never
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true, value_parser = positive)]
    pub(crate) timeout: Option<Duration>,
    /// The command and its arguments. A `--` before it is optional
    #[arg(trailing_var_arg = true, required = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}

/// Show the rate limit and the tasks of a queue, and why nothing starts.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  interval-queue status --store redis://localhost --queue api
  interval-queue status --json | jq .reason    # times are in microseconds")]
pub(crate) struct Status {
    #[command(flatten)]
    pub(crate) target: Target,
    /// Print one JSON object; `interval-queue schema` describes its fields
    #[arg(long)]
    pub(crate) json: bool,
}

/// List the queues of a store, with their rates, tasks, pauses and holds.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  interval-queue list --store file:/var/lib/jobs/queues.json
  interval-queue list --store postgres://user@db.internal/jobs
  interval-queue list --json | jq -r '.[] | select(.paused).queue'")]
pub(crate) struct List {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// Print an array of the objects that `status --json` prints
    #[arg(long)]
    pub(crate) json: bool,
}

/// The queue, or the kinds and keys of its stored tasks, to pause or resume.
#[derive(Debug, Args)]
pub(crate) struct Halt {
    #[command(flatten)]
    pub(crate) target: Target,
    /// Stored tasks of this kind instead of the queue; may be given several times
    #[arg(long = "kind", value_name = "KIND", value_parser = kind)]
    pub(crate) kinds: Vec<Kind>,
    /// Stored tasks with this key instead of the queue; may be given several times
    ///
    /// A resumed key has the key limit of the queue again.
    #[arg(long = "key", value_name = "KEY", value_parser = key)]
    pub(crate) keys: Vec<Key>,
}

/// Start nothing for some time, as after a `Retry-After`. A longer hold in force stays.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  interval-queue hold 30s --store redis://localhost --queue api")]
pub(crate) struct Hold {
    #[command(flatten)]
    pub(crate) target: Target,
    /// How long nothing starts, 1us to 366days
    #[arg(value_name = "DURATION", allow_hyphen_values = true, value_parser = interval)]
    pub(crate) duration: Duration,
}

/// Change the rate or the running limit of a queue, now, for all processes.
///
/// A queue of stored tasks that has no rate gets one. For the limits and retention of stored tasks
/// see `tasks set`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("settings").args(["every", "rate", "max_running"]).required(true).multiple(true))]
#[command(after_help = "\
Examples:
  interval-queue set --every 1s --store redis://localhost --queue api
  interval-queue set --rate 5/s --burst 20 --rate 10000/day
  interval-queue set --max-running none")]
pub(crate) struct Set {
    #[command(flatten)]
    pub(crate) target: Target,
    #[command(flatten)]
    pub(crate) pace: PaceArgs,
    /// How many commands of `run`, `each` and `turns` may run at once, over all processes, or none.
    /// Default: unchanged
    #[arg(long, value_name = "N|none", allow_hyphen_values = true, value_parser = max_running)]
    pub(crate) max_running: Option<MaxRunning>,
}

pub(crate) fn store_url(text: &str) -> Result<String, String> {
    if text.starts_with("memory:") || text.starts_with("sqlite::memory:") {
        let why = "this store is private to one process";
        return Err(format!("{why}: give file:PATH, sqlite:PATH, redis://HOST or postgres://HOST/DATABASE"));
    }
    if text.parse::<TaskState>().is_ok() && !Path::new(text).exists() {
        return Err(format!(
            "{text} is a state of tasks: for tasks in it run `interval-queue tasks list --state {text}`; else give a URL or ./{text}"
        ));
    }
    if is_directory(text) {
        return Ok(format!("dir:{}", text.replace('%', "%25").replace('?', "%3F")));
    }
    Ok(text.to_owned())
}

/// A directory's path has no scheme, is no file and does not look like a file. A text with an `@`
/// or an `=` may be an address with a password, so it is no path.
fn is_directory(text: &str) -> bool {
    let path = Path::new(text);
    let looks_like_a_file =
        path.extension().is_some_and(|ending| ["json", "db", "sqlite"].iter().any(|it| ending == *it));
    !text.is_empty()
        && !text.contains([':', '@', '='])
        && (path.is_dir() || !path.exists() && !looks_like_a_file)
}

pub(crate) fn max_running(text: &str) -> Result<MaxRunning, String> {
    match (text, text.parse()) {
        ("none", _) => Ok(MaxRunning::Unlimited),
        (_, Ok(limit @ 1..)) => Ok(MaxRunning::AtMost(limit)),
        _ => Err(format!("give a number from 1 to {}, or none", u32::MAX)),
    }
}

pub(crate) fn label(text: &str) -> Result<String, String> {
    Label::new(text).map(String::from).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        super::Cli::command().debug_assert();
    }
}
