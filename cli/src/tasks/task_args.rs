//! The command line of `tasks`.

use std::time::Duration;

use clap::{ArgGroup, Args, Subcommand, value_parser};
use interval_queue::QueueName;
use interval_queue_documents::duration::{self, positive};
use interval_queue_tasks::{Cursor, FlowId, Key, Kind, State, Tag, Verb, WorkerId};

use super::{
    alerts::Watch,
    follow::Follow,
    id_arg::IdArg,
    note::Note,
    recount::Recount,
    set::Set,
    tags::Tags,
    times::Times,
    transfer::{Copy, Move},
    verb_args::{ChangeTag, Delay, Link, Priority, Retry, Unlink},
};
use crate::{
    add::{key, kind, tag},
    args::{EXIT_CODES, StoreArgs, Target, store_url},
    exit::{Failure, USAGE},
};

const HELP: &str = "\
Examples:
  export INTERVAL_QUEUE_STORE=sqlite:/var/lib/jobs/queues.db
  export INTERVAL_QUEUE_NAME=mail
  interval-queue tasks                       # counts, workers, what is wrong
  interval-queue tasks list --state failed --error timeout
  interval-queue tasks list --newest --limit 20 --payload ada@example.org
  interval-queue tasks show 01957b6e-5e1a-7c3e-9a53-0c6e3a1f2b4d
  interval-queue tasks why 01957b6e-5e1a-7c3e-9a53-0c6e3a1f2b4d
  interval-queue tasks workers               # workers and their runs
  interval-queue tasks times                 # how long tasks waited and ran
  interval-queue tasks follow --to failed    # a line of JSON for each failure
  interval-queue tasks watch --alert 'failed > 10' -- page-someone
  interval-queue tasks failures              # failures by error text
  interval-queue tasks retry --state failed --kind mail --dry-run
  interval-queue tasks cancel --tag import-7
  interval-queue tasks wait --flow import-7 && echo 'all is done'
  interval-queue tasks retry --flow import-7
  interval-queue tasks purge --state done --older-than 7days

States of a task:
  added        the next poll of a worker checks its gates
  waiting      waits for upstream tasks
  scheduled    waits for its time: a delay or a retry
  blocked      waits for its key
  ready        waits for a worker
  leased       a worker runs it
  done, failed, cancelled    it has ended
  purged       deleted; only its id is kept for a while
";

pub(super) const SELECTOR: &str = "\
Selectors:
  A task is selected if it matches all given options. If an option is given
  several times, one match is enough; but of --tag, all must match. If no task
  matches, an error is printed to stderr, and the exit code is 66. Commands
  that change tasks need a selector or --all.";

const GRAPHS: &str = "\
Flows and graphs:
  A flow is all tasks that one `add --flow` has added. --flow alone, and
  --downstream, change a whole graph. A retry takes its failed and cancelled
  tasks and goes from upstream to downstream: done tasks stay done, and their
  results are used again. With --done it runs done tasks again, too. All other
  changes go from downstream to upstream. So no task starts, or is cancelled
  again, in between.";

/// Show the tasks of a queue, its workers and why nothing runs; list, show and change tasks.
///
/// Without a command it prints the counts, the rate, the workers and what is in force.
#[derive(Debug, Args)]
#[command(name = "tasks", subcommand_negates_reqs = true)]
#[command(after_long_help = format!("{HELP}\n{SELECTOR}\n\n{EXIT_CODES}"))]
#[command(after_help = "`--help` shows examples, states and exit codes.")]
pub(crate) struct TasksArgs {
    #[command(flatten)]
    queue: QueueArgs,
    /// Print one JSON object; `interval-queue schema tasks` describes its fields
    #[arg(long)]
    pub(super) json: bool,
    /// How long the rate of ended tasks is measured; 0s: not at all
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = duration::parse)]
    pub(super) over: Duration,
    #[command(subcommand)]
    pub(super) action: Option<Action>,
}

/// The queue, before or after the subcommand.
#[derive(Debug, Args)]
struct QueueArgs {
    /// Rejected: it belongs after the subcommand.
    #[arg(id = "misplaced_state", long = "state", hide = true, value_name = "STATE", value_parser = state_before_subcommand)]
    _misplaced_state: Option<State>,
    /// The store: sqlite:PATH, dir:PATH, redis://HOST or postgres://HOST/DATABASE
    #[arg(
        long,
        alias = "url",
        global = true,
        display_order = 900,
        value_name = "URL",
        env = "INTERVAL_QUEUE_STORE"
    )]
    #[arg(hide_env_values = true, value_parser = store_url)]
    store: Option<String>,
    /// The queue: 1 to 200 bytes of printable text
    #[arg(
        long,
        global = true,
        display_order = 900,
        value_name = "NAME",
        env = "INTERVAL_QUEUE_NAME",
        allow_hyphen_values = true
    )]
    queue: Option<QueueName>,
}

/// The commands of `tasks`.
#[derive(Debug, Subcommand)]
pub(super) enum Action {
    #[command(alias = "ls")]
    List(List),
    /// Show one task with its runs, why it does not run, and the graph around it.
    ///
    /// The graph shows ten neighbours of each task, up to four tasks away.
    #[command(aliases = ["inspect", "describe"])]
    #[command(after_help = "Example:\n  interval-queue tasks show 01957b6e-5e1a-7c3e-9a53-0c6e3a1f2b4d")]
    Show(One),
    /// Explain why a task does not run: what it waits for, what is ahead of it, what happens next
    /// and when.
    ///
    /// The ten nearest tasks ahead of it are shown. To count the tasks ahead, at most a thousand
    /// are read.
    #[command(alias = "explain")]
    #[command(after_help = "Example:\n  interval-queue tasks why 01957b6e-5e1a-7c3e-9a53-0c6e3a1f2b4d")]
    Why(One),
    Workers(Workers),
    Times(Times),
    #[command(aliases = ["tail", "events"])]
    Follow(Follow),
    Note(Note),
    #[command(aliases = ["alert", "alerts"])]
    Watch(Watch),
    Tags(Tags),
    #[command(alias = "errors")]
    Failures(Failures),
    Wait(Wait),
    /// Cancel tasks that have not ended.
    ///
    /// Workers are asked to stop running tasks, within half a lease. Such a task ends as cancelled,
    /// however its run ends.
    #[command(
        after_help = format!("Examples:\n  interval-queue tasks cancel --kind digest --older-than 1day --dry-run\n  \
        interval-queue tasks cancel --flow import-7\n\n{SELECTOR}\n\n{GRAPHS}")
    )]
    #[command(aliases = ["kill", "revoke", "abort"])]
    Cancel(Change),
    /// Run ended tasks again, with all their attempts.
    ///
    /// A task whose unique name another task holds is left out: it is printed, and the exit code is
    /// 75.
    #[command(
        after_help = format!("Examples:\n  interval-queue tasks retry --state failed --error 'connection refused'\n  \
        interval-queue tasks retry --flow night --done\n  \
        interval-queue tasks retry --downstream 01957b6e-5e1a-7c3e-9a53-0c6e3a1f2b4d\n\n{SELECTOR}\n\n{GRAPHS}")
    )]
    #[command(aliases = ["requeue", "rerun"])]
    Retry(Retry),
    /// Run scheduled tasks now; ask workers to give running tasks back.
    #[command(
        after_help = format!("Example:\n  interval-queue tasks release --state scheduled --kind digest\n\n{SELECTOR}")
    )]
    Release(Change),
    Delay(Delay),
    Priority(Priority),
    Tag(ChangeTag),
    Link(Link),
    Unlink(Unlink),
    #[command(alias = "cp")]
    Copy(Copy),
    #[command(alias = "mv")]
    Move(Move),
    /// Delete ended tasks, all but their ids.
    ///
    /// An ended task that another task still needs is kept and printed, and the exit code is 75.
    #[command(
        after_help = format!("Example:\n  interval-queue tasks purge --state done --older-than 7days\n\n{SELECTOR}")
    )]
    #[command(aliases = ["rm", "remove", "delete"])]
    Purge(Change),
    Set(Set),
    Recount(Recount),
}

/// List tasks in the order of adding. Default: all tasks.
#[derive(Debug, Args)]
#[command(after_help = format!("Examples:\n  interval-queue tasks list --state failed\n  \
    interval-queue tasks list --newest --limit 20\n  \
    interval-queue tasks list --json --payloads | jq -r .payload.to\n\n{SELECTOR}"))]
pub(super) struct List {
    #[command(flatten)]
    pub(super) selector: SelectorArgs,
    /// Begin with the task added last; with ended states alone: with the one that ended last
    #[arg(long)]
    pub(super) newest: bool,
    /// Print at most N tasks, and how to go on after them. Default: all
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..))]
    pub(super) limit: Option<u64>,
    /// Go on after the last task of an earlier list, in its order; it has printed this cursor
    #[arg(long, value_name = "CURSOR")]
    pub(super) after: Option<Cursor>,
    /// Print only the number of selected tasks, also 0; with --limit N: counted up to N
    #[arg(long, conflicts_with_all = ["newest", "after", "payloads"])]
    pub(super) count: bool,
    /// Also print payloads and results
    #[arg(long)]
    pub(super) payloads: bool,
    /// Print a JSON object per line for each task; `interval-queue schema tasks` describes its
    /// fields
    #[arg(long)]
    pub(super) json: bool,
}

/// One task.
#[derive(Debug, Args)]
pub(super) struct One {
    /// The id of the task, or its last 8 characters or more
    #[arg(value_name = "ID")]
    pub(super) id: IdArg,
    /// Print one JSON object; `interval-queue schema tasks` describes its fields
    #[arg(long)]
    pub(super) json: bool,
}

/// Show the workers of the queue: their kinds, leases and runs. Includes workers seen within the
/// last hour.
///
/// Ten runs of each worker are shown, the oldest first, with --json a hundred.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  interval-queue tasks workers\n  \
    interval-queue tasks workers lost 2f6f3cd1-4a55-4a52-b4f9-8f3a4a6de7a1")]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct Workers {
    #[command(subcommand)]
    pub(super) action: Option<WorkersAction>,
    /// Print one JSON object; `interval-queue schema tasks` describes its fields
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Subcommand)]
pub(super) enum WorkersAction {
    /// Declare workers lost, for example when their host has died: their tasks are retried at once
    ///
    /// Without it, the tasks of a dead worker are retried when its lease ends. Each run counts as a
    /// failure, as after the end of a lease. A worker that lives learns so with its next poll, ends
    /// its runs and goes on; the store refuses their results.
    Lost(Lost),
}

#[derive(Debug, Args)]
pub(super) struct Lost {
    /// Ids of workers, as `tasks workers` prints them
    #[arg(value_name = "ID", required = true, value_parser = worker_id)]
    pub(super) workers: Vec<WorkerId>,
}

fn worker_id(text: &str) -> Result<WorkerId, String> {
    text.parse().map_err(|_| {
        format!("{text:?} is no id of a worker: give it whole, as in 2f6f3cd1-4a55-4a52-b4f9-8f3a4a6de7a1")
    })
}

/// Show failures grouped by error text, the most frequent first, with the command that retries each
/// group.
///
/// It includes tasks that wait for a retry. Texts are one group if they differ only in numbers,
/// hexadecimal words, UUIDs, times, addresses or quoted text. A short number after a word such as
/// code, status or HTTP separates groups. The hundred most frequent groups are shown.
#[derive(Debug, Args)]
#[command(after_help = format!("Examples:\n  interval-queue tasks failures\n  \
    interval-queue tasks failures --json | jq '.groups[] | [.count, .text]'\n\n{SELECTOR}"))]
pub(super) struct Failures {
    #[command(flatten)]
    pub(super) selector: SelectorArgs,
    /// Print one JSON object; `interval-queue schema tasks` describes its fields
    #[arg(long)]
    pub(super) json: bool,
}

/// Wait until tasks, or all tasks of a flow, have ended; print the result of each task.
///
/// The exit code is 0 if all are done. It is 123 if some failed or were cancelled: stderr names
/// them with their errors, of a flow the first one. It is 124 if they have not ended within
/// --timeout. On a terminal the progress is shown.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("which").args(["ids", "flow"]).required(true))]
#[command(after_help = "Examples:\n  \
    interval-queue tasks wait --flow import-7 --timeout 1h && echo 'all is done'\n  \
    result=$(interval-queue tasks wait \"$(interval-queue add '\"ada\"')\")")]
pub(super) struct Wait {
    /// The ids of the tasks, or their last 8 characters or more
    #[arg(value_name = "ID")]
    pub(super) ids: Vec<IdArg>,
    /// Wait for all tasks of this flow, also for tasks added to it meanwhile; `add --flow` prints
    /// its id
    #[arg(long, value_name = "ID")]
    pub(super) flow: Option<FlowId>,
    /// Give up with exit code 124 after this time. Default: never
    #[arg(long, value_name = "DURATION", value_parser = positive)]
    pub(super) timeout: Option<Duration>,
    /// Print no results and no progress
    #[arg(short, long)]
    pub(super) quiet: bool,
    /// Print JSON: with ids one object per line for each task, with --flow one object
    ///
    /// `interval-queue schema tasks` describes its fields.
    #[arg(long)]
    pub(super) json: bool,
}

/// The tasks that a verb changes, and how.
#[derive(Debug, Args)]
pub(super) struct Change {
    #[command(flatten)]
    pub(super) selector: SelectorArgs,
    /// Also all tasks downstream of the named ones: all that wait for them, directly or indirectly
    #[arg(long, requires = "ids", conflicts_with_all = [
        "state", "flow", "kinds", "key", "tags", "schedule", "unique", "worker", "error", "payload", "newer_than", "older_than"
    ])]
    pub(super) downstream: bool,
    /// Select all tasks of the queue; required if nothing else selects
    #[arg(long)]
    pub(super) all: bool,
    /// Change at most N tasks, those added first. Default: all selected tasks
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..), conflicts_with = "downstream")]
    pub(super) limit: Option<u64>,
    /// Print what would be done, and change nothing
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Print one JSON object; `interval-queue schema tasks` describes its fields
    #[arg(long)]
    pub(super) json: bool,
}

/// The selector of tasks.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct SelectorArgs {
    /// Ids of tasks, or their last 8 characters or more
    #[arg(value_name = "ID")]
    pub(super) ids: Vec<IdArg>,
    /// Select tasks in this state, see `tasks --help`; may be given several times
    #[arg(id = "state", long = "state", value_name = "STATE", value_parser = state)]
    pub(super) states: Vec<State>,
    /// Select tasks of this kind; may be given several times
    #[arg(long = "kind", value_name = "KIND", value_parser = kind)]
    pub(super) kinds: Vec<Kind>,
    /// Select tasks with this key
    #[arg(long, value_name = "KEY", value_parser = key)]
    pub(super) key: Option<Key>,
    /// Select tasks with this tag; given several times: with all of these
    #[arg(long = "tag", value_name = "TAG", value_parser = tag)]
    pub(super) tags: Vec<Tag>,
    /// Select tasks of this flow, see `add --flow`
    #[arg(long, value_name = "ID")]
    pub(super) flow: Option<FlowId>,
    /// Select tasks that this schedule has added
    #[arg(long, value_name = "NAME", value_parser = key)]
    pub(super) schedule: Option<Key>,
    /// Select tasks added with this unique name, also if they have released it
    #[arg(long, value_name = "NAME", value_parser = key)]
    pub(super) unique: Option<Key>,
    /// Select tasks that this worker has, or had last
    #[arg(long, value_name = "ID")]
    pub(super) worker: Option<WorkerId>,
    /// Select tasks whose error contains this text
    #[arg(long, value_name = "TEXT")]
    pub(super) error: Option<String>,
    /// Select tasks whose payload contains this text: JSON as it was added, with its quotes and spaces
    #[arg(long, value_name = "TEXT")]
    pub(super) payload: Option<String>,
    /// Select tasks added less than this long ago; with ended states: ended less than this long ago
    #[arg(long, value_name = "DURATION", value_parser = positive)]
    pub(super) newer_than: Option<Duration>,
    /// Select tasks added at least this long ago; with ended states: ended at least this long ago
    #[arg(long, value_name = "DURATION", value_parser = positive)]
    pub(super) older_than: Option<Duration>,
}

fn state_before_subcommand(text: &str) -> Result<State, String> {
    let state = state(text)?;
    Err(format!("`interval-queue tasks list --state {state}` selects by it"))
}

fn state(text: &str) -> Result<State, String> {
    if text.contains(':') {
        return Err("this is no state of a task: give a store by --store".into());
    }
    text.parse().map_err(|error: interval_queue::InvalidInput| error.to_string())
}

impl Action {
    pub(super) fn verb(&self) -> Option<(Verb, &Change)> {
        match self {
            Self::List(_)
            | Self::Show(_)
            | Self::Why(_)
            | Self::Workers(_)
            | Self::Times(_)
            | Self::Follow(_)
            | Self::Note(_)
            | Self::Watch(_)
            | Self::Tags(_)
            | Self::Set(_)
            | Self::Recount(_)
            | Self::Failures(_)
            | Self::Wait(_)
            | Self::Copy(_)
            | Self::Move(_) => None,
            Self::Cancel(change) => Some((Verb::Cancel, change)),
            Self::Retry(retry) => Some((Verb::Retry, &retry.change)),
            Self::Release(change) => Some((Verb::Release, change)),
            Self::Delay(delay) => Some((delay.verb(), &delay.change)),
            Self::Priority(priority) => Some((priority.verb(), &priority.change)),
            Self::Tag(tag) => Some((tag.verb()?, &tag.change)),
            Self::Link(link) => Some((link.verb(), &link.change)),
            Self::Unlink(unlink) => Some((unlink.verb(), &unlink.change)),
            Self::Purge(change) => Some((Verb::Purge, change)),
        }
    }

    pub(super) fn is_rerun(&self) -> bool {
        matches!(self, Self::Retry(retry) if retry.done)
    }
}

impl TasksArgs {
    pub(super) fn target(&self) -> Result<Target, Failure> {
        let missing = |what: &str, variable: &str| {
            Failure::new(USAGE, format!("{what} is missing: give it, or set {variable}"))
        };
        let url = self.queue.store.clone().ok_or_else(|| missing("--store URL", "INTERVAL_QUEUE_STORE"))?;
        let queue = self.queue.queue.clone().ok_or_else(|| missing("--queue NAME", "INTERVAL_QUEUE_NAME"))?;
        Ok(Target { store: StoreArgs { url }, queue })
    }
}
