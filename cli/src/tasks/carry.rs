//! `tasks copy` and `tasks move`: tasks to another queue, in the same place or another one.

use std::hash::{DefaultHasher, Hash, Hasher};

use clap::{ArgGroup, Args};
use interval_queue::{
    MaxRunning, OnExisting, QueueName,
    contract::MAX_LABEL,
    task_contract::{Change, Command, Overview, Selector, SettingsChange},
};
use interval_queue_tasks::Transferred;
use serde_json::json;

use super::{ask::Tasks, open_queue, task_args::SelectorArgs, wait::bar};
use crate::{
    args::{StoreArgs, Target, store_url},
    exit::{Failure, TEMPFAIL, USAGE, print, say},
    place::without_secrets,
};

/// Copy tasks to another queue or place, as they are stored: with their ids, order, times and runs so far.
///
/// A task that is there already stays as it is, so a copy that was interrupted is done again and goes on. What runs
/// follows when its run has ended.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    interval-queue tasks copy --to sqlite:/backup/queues.db\n  \
    interval-queue tasks copy --to-queue looked-at --state failed --error timeout")]
pub(super) struct Copy {
    #[command(flatten)]
    pub(super) carry: Carry,
}

/// Move tasks that have not ended to another queue or place, while workers run at both ends.
///
/// No task can start at both. What runs follows when its run has ended, if it is to run again; so does what is added
/// meanwhile: it ends when nothing is left. Here moved tasks are cancelled and say where they are. A move that was
/// interrupted is done again, and goes on.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    interval-queue tasks move --to postgres://db/work --all\n  \
    interval-queue tasks move --to-queue slow --kind report")]
pub(super) struct Move {
    #[command(flatten)]
    pub(super) carry: Carry,
    /// All tasks of the queue that have not ended; needed if nothing else says which
    #[arg(long)]
    all: bool,
}

/// Where to, and which.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("destination").args(["to", "to_queue"]).required(true).multiple(true))]
pub(super) struct Carry {
    /// The place: dir:PATH, sqlite:PATH, redis://HOST, postgres://HOST/DB. Default: where they are
    #[arg(long, value_name = "URL", value_parser = store_url)]
    to: Option<String>,
    /// The queue there. Default: of the same name
    #[arg(long, value_name = "NAME", allow_hyphen_values = true)]
    to_queue: Option<QueueName>,
    #[command(flatten)]
    pub(super) selector: SelectorArgs,
    /// Show no progress
    #[arg(short, long)]
    quiet: bool,
    /// Print one JSON object; `interval-queue schema tasks` describes its fields
    #[arg(long)]
    json: bool,
}

pub(super) async fn copy(target: &Target, tasks: &Tasks, copy: &Copy) -> Result<(), Failure> {
    let (selector, _) = tasks.selector(&copy.carry.selector).await?;
    carry(target, tasks, &copy.carry, selector, false).await
}

pub(super) async fn move_tasks(target: &Target, tasks: &Tasks, args: &Move) -> Result<(), Failure> {
    let (selector, _) = tasks.selector(&args.carry.selector).await?;
    if selector.is_all() && !args.all {
        let text = "nothing says which tasks to move: name some, select some by --state, --kind, --flow, …, or give --all";
        return Err(Failure::new(USAGE, text));
    }
    carry(target, tasks, &args.carry, selector, true).await
}

async fn carry(
    target: &Target,
    tasks: &Tasks,
    args: &Carry,
    selector: Selector,
    moves: bool,
) -> Result<(), Failure> {
    let overview = tasks.look().await?.ok_or_else(|| tasks.missing())?;
    check(tasks, &selector, moves).await?;
    let url = args.to.clone().unwrap_or_else(|| target.store.url.clone());
    let queue = args.to_queue.clone().unwrap_or_else(|| target.queue.clone());
    let to = Target { store: StoreArgs { url }, queue };
    let (from, there) = (open_queue(target).await?, made_like(&to, &overview).await?);
    let bar = bar(args.quiet);
    let tell = |so_far: &Transferred| bar.set_message(in_words(so_far, moves));
    let carried = match moves {
        true => from.move_to(&there, &selector, &name_of(&to), tell).await,
        false => from.copy_to(&there, &selector, tell).await,
    };
    let so_far = bar.message();
    bar.finish_and_clear();
    let carried = carried.map_err(|error| {
        let failure = Failure::from(&error);
        match so_far.is_empty() {
            true => failure,
            false => Failure {
                message: format!("{}; {so_far} before: do it again to go on", failure.message),
                ..failure
            },
        }
    })?;
    if args.json {
        let Transferred { new, again, kept, taken, .. } = &carried;
        let taken: Vec<_> = taken.iter().map(|(id, holder)| json!({ "id": id, "holder": holder })).collect();
        let object = json!({ "to": name_of(&to), "new": new, "again": again, "kept": kept, "taken": taken });
        print(&format!("{object:#}"))?;
    }
    say(&in_words(&carried, moves));
    if let Some((id, holder)) = carried.taken.first() {
        let text = format!(
            "{} stay: other tasks there have their unique names; task {holder} has that of {id}",
            carried.taken.len()
        );
        return Err(Failure::new(TEMPFAIL, text));
    }
    match carried.kept.first() {
        None => Ok(()),
        Some(first) => Err(Failure::new(
            TEMPFAIL,
            format!(
                "{} stay, {first} among them: they wait for tasks that were not selected and have not ended; select those, too, \
                 or do it again later",
                carried.kept.len()
            ),
        )),
    }
}

/// Whether there is something to carry: nothing is made at the destination before.
async fn check(tasks: &Tasks, selector: &Selector, moves: bool) -> Result<(), Failure> {
    if moves && !selector.states.is_empty() && selector.states.iter().all(|state| state.is_ended()) {
        return Err(Failure::new(USAGE, "a move takes tasks that have not ended: copy those that have"));
    }
    let rows = tasks.rows(selector.ids.clone()).await?;
    match selector.ids.iter().find(|id| rows.iter().all(|row| row.id != **id)) {
        Some(unknown) => tasks.known(*unknown).await.map(drop),
        None => Ok(()),
    }
}

/// The queue there, with the settings of the one here if it is new.
async fn made_like(to: &Target, like: &Overview) -> Result<interval_queue_tasks::TaskQueue, Failure> {
    let settings = &like.settings;
    let change = SettingsChange {
        max_running: settings.max_running.map_or(MaxRunning::Unlimited, MaxRunning::AtMost),
        key_limit: Some(settings.key_limit),
        ageing: Some(settings.ageing),
        keep: Some(settings.keep),
        max_payload: Some(settings.max_payload),
        policy: Some(settings.policy),
    };
    let open = Command::Change(Change::Open(change, OnExisting::Keep));
    Tasks::open(to).await?.ask(open).await?;
    open_queue(to).await
}

/// What moved tasks say of where they are, in as many bytes as may be.
fn name_of(to: &Target) -> String {
    let whole = format!("{} in {}", to.queue.as_str(), without_secrets(&to.store.url));
    if whole.len() <= MAX_LABEL {
        return whole;
    }
    let mut hasher = DefaultHasher::new();
    whole.hash(&mut hasher);
    let tail = format!("… {:016x}", hasher.finish());
    let fits = |at: &usize| whole.is_char_boundary(*at);
    let cut = (0..=MAX_LABEL - tail.len()).rev().find(fits).unwrap_or(0);
    format!("{}{tail}", &whole[..cut])
}

fn in_words(so_far: &Transferred, moves: bool) -> String {
    let mut words = format!("{} tasks {}", so_far.new, if moves { "moved" } else { "copied" });
    if so_far.again > 0 {
        words += &format!(", {} were there before", so_far.again);
    }
    if so_far.running > 0 {
        words += &format!(", {} run and follow when they have ended", so_far.running);
    }
    words
}
