//! What the command line of `tasks` says.

use std::{ffi::OsString, time::Duration};

use clap::{ArgGroup, Args, Subcommand, value_parser};
use interval_queue::{
    QueueName,
    task_contract::{Key, Kind, State, Tag, TaskId, Verb, WorkerId},
};
use interval_queue_tasks::FlowId;

use super::{
    carry::{Copy, Move},
    follow::Follow,
    recount::Recount,
    set::Set,
    tags::Tags,
    times::Times,
    verb_args::{ChangeTag, Delay, Link, Priority, Retry, Unlink},
};
use crate::{
    add::{key, kind, tag},
    args::{EXIT_CODES, StoreArgs, Target, store_url},
    duration::positive,
    exit::{Failure, USAGE},
};

const HELP: &str = "\
Examples:
  export INTERVAL_QUEUE_STORE=sqlite:/var/lib/jobs/queues.db INTERVAL_QUEUE_NAME=mail
  interval-queue tasks                                        # how they stand
  interval-queue tasks list --state failed --error timeout    # of all that are stored
  interval-queue tasks show 01957b6e-5e1a-7c3e-9a53-0c6e3a1f2b4d
  interval-queue tasks why 01957b6e-5e1a-7c3e-9a53-0c6e3a1f2b4d   # behind whom, and until when
  interval-queue tasks workers                                # who works, and on what
  interval-queue tasks times                                  # how long they waited and ran
  interval-queue tasks follow --to failed                     # a line of JSON each time one fails
  interval-queue tasks failures                               # by their errors, with what retries each group
  interval-queue tasks retry --state failed --kind mail --dry-run
  interval-queue tasks cancel --tag import-7
  interval-queue tasks wait --flow import-7 && echo 'all is done'
  interval-queue tasks retry --flow import-7                  # what failed and what was cancelled for it
  interval-queue tasks purge --state done --older-than 7days

States of a task, in the order of its life:
  added       stored; the next step of a worker lets it through its gates
  waiting     for other tasks        scheduled   for its time
  blocked     for its key            ready       for a worker
  leased      a worker runs it       done, failed, cancelled   it has ended
  purged      forgotten but for its id, which is kept for a while
";

pub(super) const SELECTOR: &str = "\
What is selected fits all options that are given; of one that is given several times, one is enough.
A selector that fits nothing is told on stderr and ends with 66. A verb asks for a selector, or for --all.";

const GRAPHS: &str = "\
A flow is the tasks that one `add --flow` has added. With --flow alone, and with --downstream,
retry takes those that failed or were cancelled: what is done stays done, and its results are
used again, unless --done runs that again, too. Retried tasks begin above, all else below, so
that nothing starts, or is cancelled again, before it is its turn.";

/// Show how the stored tasks of a queue stand and why nothing runs; who works; list, show and change tasks.
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
    /// How long the rate is measured; 0s: not at all
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = crate::duration::parse)]
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
    /// The store of the queue: dir:PATH, sqlite:PATH, redis://HOST or postgres://HOST/DATABASE
    #[arg(long, global = true, display_order = 900, value_name = "URL", env = "INTERVAL_QUEUE_STORE")]
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

/// What is done with tasks.
#[derive(Debug, Subcommand)]
pub(super) enum Action {
    List(List),
    /// Show all that is known of one task, why it does not run, and the graph around it.
    ///
    /// Of that graph ten neighbours of each task are drawn, four tasks far.
    #[command(after_help = "Example:\n  interval-queue tasks show 01957b6e-5e1a-7c3e-9a53-0c6e3a1f2b4d")]
    Show(One),
    /// Say of one task what it waits for, behind whom, how it goes on, and when at the latest, as far as that is known.
    ///
    /// Ten tasks that are in its way are shown, the nearest first. To find its place in a line a thousand are looked
    /// at.
    #[command(after_help = "Example:\n  interval-queue tasks why 01957b6e-5e1a-7c3e-9a53-0c6e3a1f2b4d")]
    Why(One),
    Workers(Workers),
    Times(Times),
    Follow(Follow),
    Tags(Tags),
    Failures(Failures),
    Wait(Wait),
    /// Cancel tasks that have not ended. Workers are asked to stop those that run; they end as cancelled, however their
    /// commands end.
    #[command(
        after_help = format!("Examples:\n  interval-queue tasks cancel --kind digest --older-than 1day --dry-run\n  \
        interval-queue tasks cancel --flow import-7\n\n{GRAPHS}")
    )]
    Cancel(Change),
    /// Run tasks again that have ended, with all their attempts. A task whose unique name another task has is left out.
    #[command(
        after_help = format!("Examples:\n  interval-queue tasks retry --state failed --error 'connection refused'\n  \
        interval-queue tasks retry --flow night --done\n  \
        interval-queue tasks retry --downstream 01957b6e-5e1a-7c3e-9a53-0c6e3a1f2b4d\n\n{GRAPHS}")
    )]
    Retry(Retry),
    /// Run tasks now that wait for their time; have workers give those back that run.
    #[command(after_help = "Example:\n  interval-queue tasks release --state scheduled --kind digest")]
    Release(Change),
    Delay(Delay),
    Priority(Priority),
    Tag(ChangeTag),
    Link(Link),
    Unlink(Unlink),
    Copy(Copy),
    Move(Move),
    /// Forget tasks that have ended, but for those that a task needs that has not ended.
    #[command(after_help = "Example:\n  interval-queue tasks purge --state done --older-than 7days")]
    Purge(Change),
    Set(Set),
    Recount(Recount),
    #[command(hide = true)]
    Pause(Elsewhere),
    #[command(hide = true)]
    Resume(Elsewhere),
    #[command(hide = true, alias = "shutdown")]
    Drain(Elsewhere),
    #[command(hide = true, aliases = ["status", "counts"])]
    Stats(Elsewhere),
    #[command(hide = true)]
    Ls(Elsewhere),
}

/// Words that other programs use, whose commands are elsewhere here.
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub(super) struct Elsewhere {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    rest: Vec<OsString>,
}

/// List tasks in the order of their ids, which is about that of adding; all of them without a selector.
#[derive(Debug, Args)]
#[command(after_help = format!("Examples:\n  interval-queue tasks list --state failed\n  \
    interval-queue tasks list --json --payloads | jq -r .payload.to\n\n{SELECTOR}"))]
pub(super) struct List {
    #[command(flatten)]
    pub(super) selector: SelectorArgs,
    /// Show payloads and results, too
    #[arg(long)]
    pub(super) payloads: bool,
    /// Print a JSON object for each, one a line; `interval-queue schema tasks` describes its fields
    #[arg(long)]
    pub(super) json: bool,
}

/// One task.
#[derive(Debug, Args)]
pub(super) struct One {
    /// The id of the task
    #[arg(value_name = "ID")]
    pub(super) id: TaskId,
    /// Print one JSON object; `interval-queue schema tasks` describes its fields
    #[arg(long)]
    pub(super) json: bool,
}

/// Show who works on the queue: kinds, leases, what each runs and for how long; also workers that have been silent for
/// less than an hour.
///
/// Of each worker ten runs are shown, those that began first, and with --json a hundred.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  interval-queue tasks workers")]
pub(super) struct Workers {
    /// Print one JSON object; `interval-queue schema tasks` describes its fields
    #[arg(long)]
    pub(super) json: bool,
}

/// Show what failed, for good or until a retry, grouped by error text, the most frequent first, and how to retry
/// each group.
///
/// Texts are one group if they differ only in numbers, hexadecimal words, UUIDs, times, addresses or what is quoted.
/// Short numbers behind words such as code, status or HTTP tell failures apart. The hundred most frequent groups are
/// shown.
#[derive(Debug, Args)]
#[command(after_help = format!("Examples:\n  interval-queue tasks failures\n  \
    interval-queue tasks failures --kind mail --json | jq '.groups[] | [.count, .text]'\n\n{SELECTOR}"))]
pub(super) struct Failures {
    #[command(flatten)]
    pub(super) selector: SelectorArgs,
    /// Print one JSON object; `interval-queue schema tasks` describes its fields
    #[arg(long)]
    pub(super) json: bool,
}

/// Wait until tasks, or all of a flow, have ended; print the result of each task.
///
/// It ends with 0 if all are done; with 123 if some failed or were cancelled, and says which and why; with 124 if they
/// have not ended within --timeout. A terminal sees how far it is.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("which").args(["ids", "flow"]).required(true))]
#[command(after_help = "Examples:\n  \
    interval-queue tasks wait --flow import-7 --timeout 1h && echo 'all is done'\n  \
    result=$(interval-queue tasks wait \"$(interval-queue add '\"ada\"')\")")]
pub(super) struct Wait {
    /// The ids of the tasks
    #[arg(value_name = "ID")]
    pub(super) ids: Vec<TaskId>,
    /// All tasks of this flow, with those that are added to it meanwhile; `add --flow` says its id
    #[arg(long, value_name = "ID")]
    pub(super) flow: Option<FlowId>,
    /// Give up after this time, with exit code 124. Default: never
    #[arg(long, value_name = "DURATION", value_parser = positive)]
    pub(super) timeout: Option<Duration>,
    /// Print no results, and show no progress
    #[arg(short, long)]
    pub(super) quiet: bool,
    /// Print a JSON object for each task, one a line, or one for the flow; `interval-queue schema tasks` describes them
    #[arg(long)]
    pub(super) json: bool,
}

/// What a verb is about.
#[derive(Debug, Args)]
pub(super) struct Change {
    #[command(flatten)]
    pub(super) selector: SelectorArgs,
    /// And all tasks below those that are named: that wait for them, that wait for these, and so on
    #[arg(long, requires = "ids", conflicts_with_all = ["state", "flow", "kinds", "key", "tag", "unique", "worker", "error", "older_than"])]
    pub(super) downstream: bool,
    /// All tasks of the queue; needed if nothing else says which
    #[arg(long)]
    pub(super) all: bool,
    /// So many of them at most, in the order of their ids: to try a part before the rest
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..), conflicts_with = "downstream")]
    pub(super) limit: Option<u64>,
    /// Print what would be done, and do nothing
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Print one JSON object; `interval-queue schema tasks` describes its fields
    #[arg(long)]
    pub(super) json: bool,
}

/// Which tasks.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct SelectorArgs {
    /// These
    #[arg(value_name = "ID")]
    pub(super) ids: Vec<TaskId>,
    /// In this state, see `tasks --help`; may be given several times
    #[arg(id = "state", long = "state", value_name = "STATE", value_parser = state)]
    pub(super) states: Vec<State>,
    /// Of this kind; may be given several times
    #[arg(long = "kind", value_name = "KIND", value_parser = kind)]
    pub(super) kinds: Vec<Kind>,
    /// With this key
    #[arg(long, value_name = "KEY", value_parser = key)]
    pub(super) key: Option<Key>,
    /// With this tag
    #[arg(long, value_name = "TAG", value_parser = tag)]
    pub(super) tag: Option<Tag>,
    /// Of this flow, see `add --flow`
    #[arg(long, value_name = "ID", conflicts_with = "tag")]
    pub(super) flow: Option<FlowId>,
    /// With this unique name, whether or not it has it now
    #[arg(long, value_name = "NAME", value_parser = key)]
    pub(super) unique: Option<Key>,
    /// That this worker has, or had last
    #[arg(long, value_name = "ID")]
    pub(super) worker: Option<WorkerId>,
    /// Whose error has this text in it
    #[arg(long, value_name = "TEXT")]
    pub(super) error: Option<String>,
    /// Added at least so long ago; those that have ended: ended so long ago
    #[arg(long, value_name = "DURATION", value_parser = positive)]
    pub(super) older_than: Option<Duration>,
}

fn state_before_subcommand(text: &str) -> Result<State, String> {
    let state = state(text)?;
    Err(format!("`interval-queue tasks list --state {state}` selects by it"))
}

fn state(text: &str) -> Result<State, String> {
    if text.contains(':') {
        return Err("this is no state of a task; a store is given by --store".into());
    }
    text.parse().map_err(|error: interval_queue::InvalidInput| error.to_string())
}

impl Action {
    /// What it does, if it is a verb.
    pub(super) fn verb(&self) -> Option<(Verb, &Change)> {
        match self {
            Self::List(_)
            | Self::Show(_)
            | Self::Why(_)
            | Self::Workers(_)
            | Self::Times(_)
            | Self::Follow(_)
            | Self::Tags(_)
            | Self::Set(_)
            | Self::Recount(_)
            | Self::Failures(_)
            | Self::Wait(_)
            | Self::Copy(_)
            | Self::Move(_)
            | Self::Pause(_)
            | Self::Resume(_)
            | Self::Drain(_)
            | Self::Stats(_)
            | Self::Ls(_) => None,
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

    /// Where the command is that somebody looks for under this word.
    pub(super) fn elsewhere(&self) -> Option<Failure> {
        let way_out = match self {
            Self::Pause(_) => {
                "pause: `interval-queue pause` pauses a queue, also --kind or --key of its tasks"
            }
            Self::Resume(_) => "resume: `interval-queue resume` ends a pause, also of --kind or --key",
            Self::Drain(_) => {
                "drain: SIGTERM lets a worker end what runs; `interval-queue work --until-empty` ends when nothing is \
                 left; `interval-queue tasks purge` forgets what has ended"
            }
            Self::Stats(_) => {
                "stats: `interval-queue tasks` shows how many there are; `tasks times` how long they took"
            }
            Self::Ls(_) => "ls: `interval-queue tasks list` lists them",
            _ => return None,
        };
        Some(Failure::new(USAGE, format!("there is no subcommand {way_out}")))
    }

    /// Whether it runs again what is done of a graph.
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
