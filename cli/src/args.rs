//! The command line: what it says, and what `--help` teaches.

use std::{ffi::OsString, path::Path, time::Duration};

use clap::{ArgGroup, Args, Parser, Subcommand, value_parser};
use interval_queue::{
    MaxRunning, QueueName,
    contract::{Label, MAX_WEIGHT},
    task_contract::{Key, Kind, State as TaskState},
};

use crate::{
    add::{key, kind},
    duration::{interval, parse, positive},
    each::Each,
    pace::PaceArgs,
};

const EXAMPLES: &str = "\
Examples:
  export INTERVAL_QUEUE_STORE=file:/var/lib/jobs/queues.json
  export INTERVAL_QUEUE_NAME=api
  interval-queue run --every 250ms -- curl -sS https://api.example.com/1
  interval-queue each --every 250ms -- curl -sSO {} < urls
  interval-queue run --rate 5/s --burst 20 --rate 10000/day -- curl -sS …
  yes '' | head -n 3 | interval-queue turns --every 250ms
  interval-queue add '{\"to\": \"ada@example.com\"}'
  interval-queue work -- send-mail
  interval-queue status
  interval-queue hold 30s

States:
  file:/var/lib/jobs/queues.json       the processes of one host
  dir:/var/lib/jobs, or ./jobs         a directory; stored tasks are files in it
  sqlite:/var/lib/jobs/queues.db       the same, also over a crash of the host
  redis://cache.internal               any number of hosts; also rediss://,
                                       redis+unix://, redis+sentinel://, redis+cluster://
  postgres://user@db.internal/jobs     any number of hosts
  Parameters follow a ?, as in ?durability=relaxed&lock_timeout=1s. To one that
  is not known the answer lists those that are.

Durations are numbers with units: 500us, 250ms, 1.5s, 2min, 1h, 7days, 2weeks, 1month.
";

pub(crate) const EXIT_CODES: &str = "\
Exit codes:
    0      done; `run` exits with the code of CMD
   64      the command line cannot be used
   65      what is stored is damaged, of something else, or of a newer version;
           add: a line of the input is no JSON, or too long for the queue, or the
           document of a flow cannot be used
   66      there is no such queue or database, or no directory for the store file;
           tasks: there is no such task, or none fits the selector; schedule: there is
           no such schedule
   69      the store cannot be reached or did not answer in time
   70, 71  this program or the operating system failed
   73      no room is left where the store is
   74      the output cannot be written, or the items cannot be read; a stdout that
           is closed (>&-) is taken for /dev/null
   75      CMD was not started within --start-within; a queue is used and is not
           deleted;
           tasks purge, tag, link, retry, copy, move: some stay as they are; stderr says why
   77      not permitted
   78      the place of the store cannot do what is needed, for example lock
  123      each: CMD failed for some items; tasks wait: some did not end well
  124      run: CMD ran into --timeout; tasks wait: they have not ended in that time
  126      CMD cannot be executed
  127      CMD was not found
  128+N    run: CMD was killed by signal N; each, work: it was ended by signal N";

const RUN_EXAMPLES: &str = "\
Examples:
  # Four calls a second, from however many shells, hosts and cron jobs:
  interval-queue run --store redis://localhost --queue api --every 250ms \\
    -- curl -sS https://api.example.com/1

  # In a crontab that sets INTERVAL_QUEUE_STORE; gives up when the queue is long:
  0 * * * * interval-queue run --queue mail --start-within 10min -- send-digest

  # Three backups at once, started a minute apart; with the environment set. As with env
  # and timeout, CMD begins at the first word that is no option, and keeps its own options:
  interval-queue run --every 1min --max-running 3 backup --verbose /srv

What becomes of CMD:
  It is looked up on PATH before a ticket is taken: a mistyped name costs
  nothing. Without running limit and --timeout this process becomes CMD (exec).
  With one of them CMD is a child, and this process stays to count it as running
  or to end it. SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1 and SIGUSR2 that a
  process sends here are handed on. A signal that comes during the wait gives
  the place up and ends this process as it would end CMD.
  It inherits the environment, INTERVAL_QUEUE_STORE with a password in it, too,
  so that it can ask for slots itself: -- env -u INTERVAL_QUEUE_STORE CMD
  keeps that from it.
";

/// Start commands of any language and on any host at one pace.
///
/// All who name the same queue in the same state share one interval between starts, in the order in which
/// they came: shell loops, cron jobs, and services that use the Rust library. No server is needed but the
/// state: a file, an SQLite database, a Redis or a PostgreSQL.
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
    Add(crate::add::AddArgs),
    Work(crate::work::WorkArgs),
    Tasks(crate::tasks::TasksArgs),
    Schedule(crate::schedule::ScheduleArgs),
    Status(Status),
    Watch(crate::watch::Watch),
    List(List),
    /// Stop all starts, also before the first task. What runs goes on; who waits keeps the place.
    ///
    /// A start that was granted before can still come up to one second later.
    #[command(after_help = "Examples:\n  interval-queue pause --store redis://localhost --queue api\n  \
        interval-queue pause --kind mail --key customer-7          # of the stored tasks only these")]
    Pause(Halt),
    /// End a pause. Every waiting `run` and `each` starts again within about a second.
    #[command(after_help = "Examples:\n  interval-queue resume --store redis://localhost --queue api\n  \
        interval-queue resume --kind mail --key customer-7")]
    Resume(Halt),
    Hold(Hold),
    Set(Set),
    /// Forget pause, hold, far reservations and the shards; keep tickets, interval and running limit.
    ///
    /// For after an accident. A process that waits is found again when it next asks.
    #[command(after_help = "Example:\n  interval-queue reset --store redis://localhost --queue api")]
    Reset(Target),
    Delete(crate::delete::Delete),
    Prune(crate::delete::Prune),
    Migrate(crate::migrate::Migrate),
    Schema(crate::documents::Schema),
    Completions(crate::documents::Completions),
    #[command(name = "man")]
    Manual(crate::documents::Manual),
}

/// A store of queues.
#[derive(Clone, Debug, Args)]
pub(crate) struct StoreArgs {
    /// The store: dir:PATH, file:PATH, sqlite:PATH, redis://HOST or postgres://HOST/DATABASE
    #[arg(id = "store", long = "store", value_name = "URL", env = "INTERVAL_QUEUE_STORE")]
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

/// A queue, and how this process takes part in it.
#[derive(Clone, Debug, Args)]
pub(crate) struct Shard {
    #[command(flatten)]
    pub(crate) target: Target,
    #[command(flatten)]
    pub(crate) pace: PaceArgs,
    /// How many commands of a new queue may run at once, or none
    ///
    /// Default: what is stored, which holds (see --override); in a new queue any number. If this program is
    /// killed with SIGKILL it leaves CMD behind, which counts as running until the lease ends (three intervals,
    /// at least 5 s, at most 5 min).
    #[arg(long, value_name = "N|none", allow_hyphen_values = true, value_parser = max_running)]
    pub(crate) max_running: Option<MaxRunning>,
    /// Let the pace and --max-running replace what is stored, for all; without, what is stored holds
    #[arg(long = "override")]
    pub(crate) overrides: bool,
    /// How many intervals the command takes
    #[arg(long, value_name = "N", default_value_t = 1, allow_hyphen_values = true, value_parser = value_parser!(u32).range(1..=i64::from(MAX_WEIGHT)))]
    pub(crate) weight: u32,
    /// What `status` calls this process. Default: CMD pid N, or turns pid N
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
    /// Give up, with exit code 75, if CMD was not started within this time; 0s: now or never
    ///
    /// It also makes `run` try again until then if the store cannot be reached at first.
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true, value_parser = parse)]
    pub(crate) start_within: Option<Duration>,
    /// End CMD after this time: SIGTERM, 5 s later SIGKILL; exit code 124. Default: never
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true, value_parser = positive)]
    pub(crate) timeout: Option<Duration>,
    /// The command and its arguments. A `--` may stand before it
    #[arg(trailing_var_arg = true, required = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}

/// Show how a queue stands and why nothing is starting. Changes nothing.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  interval-queue status --store redis://localhost --queue api
  interval-queue status --json | jq .reason    # all times in it are microseconds")]
pub(crate) struct Status {
    #[command(flatten)]
    pub(crate) target: Target,
    /// Print one JSON object; `interval-queue schema` describes its fields
    #[arg(long)]
    pub(crate) json: bool,
}

/// List the queues of a state, with their pace, their stored tasks, and what is in force.
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

/// What is paused or resumed: a queue, or kinds and keys of its stored tasks.
#[derive(Debug, Args)]
pub(crate) struct Halt {
    #[command(flatten)]
    pub(crate) target: Target,
    /// Only stored tasks of this kind; may be given several times
    #[arg(long = "kind", value_name = "KIND", value_parser = kind)]
    pub(crate) kinds: Vec<Kind>,
    /// Only stored tasks with this key; may be given several times. A resumed key has the limit of the queue
    #[arg(long = "key", value_name = "KEY", value_parser = key)]
    pub(crate) keys: Vec<Key>,
}

impl Halt {
    /// Whether it is about a part of the stored tasks.
    pub(crate) fn is_of_parts(&self) -> bool {
        !self.kinds.is_empty() || !self.keys.is_empty()
    }
}

/// Start nothing for some time, for a `Retry-After`. A longer hold that is in force stays.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  interval-queue hold 30s --store redis://localhost --queue api")]
pub(crate) struct Hold {
    #[command(flatten)]
    pub(crate) target: Target,
    /// For how long, at most 366days
    #[arg(value_name = "DURATION", allow_hyphen_values = true, value_parser = interval)]
    pub(crate) duration: Duration,
}

/// Change the pace for all, now. A queue of stored tasks that has none gets one.
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
    /// How many commands may run at once, or none
    #[arg(long, value_name = "N|none", allow_hyphen_values = true, value_parser = max_running)]
    pub(crate) max_running: Option<MaxRunning>,
}

pub(crate) fn store_url(text: &str) -> Result<String, String> {
    if text.starts_with("memory:") || text.starts_with("sqlite::memory:") {
        let why = "it is private to one process and shares no pace";
        return Err(format!("{why}: give file:PATH, sqlite:PATH, redis://HOST or postgres://HOST/DATABASE"));
    }
    if text.parse::<TaskState>().is_ok() && !Path::new(text).exists() {
        return Err(format!(
            "{text} is a state of tasks: `interval-queue tasks list --state {text}` selects by it; give a URL here, or ./{text}"
        ));
    }
    if is_directory(text) {
        return Ok(format!("dir:{}", text.replace('%', "%25").replace('?', "%3F")));
    }
    Ok(text.to_owned())
}

/// A path alone is that of a directory, unless it is or looks like that of a file. What has an @ or an = may
/// be an address with a password.
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
