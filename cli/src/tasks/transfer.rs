//! `tasks copy` and `tasks move`: transfer tasks to another queue, in the same store or another
//! one.

use std::hash::{DefaultHasher, Hash, Hasher};

use clap::{ArgGroup, Args};
use interval_queue::{
    MaxRunning, OnExisting, QueueName,
    contract::MAX_LABEL,
    task_contract::{Change, Command, Overview, Selector, SettingsChange},
};
use interval_queue_tasks::Transferred;
use serde_json::json;

use super::{
    open_queue,
    queue_tasks::Tasks,
    task_args::{SELECTOR, SelectorArgs},
    task_words,
    wait::bar,
};
use crate::{
    args::{StoreArgs, Target, store_url},
    exit::{Failure, TEMPFAIL, USAGE, print, report},
    place::without_secrets,
};

/// Copy tasks to another queue or store, with their ids, order, times and runs.
///
/// A task that exists at the destination stays as it is. So repeat an interrupted copy: it
/// continues. Running tasks follow when their runs have ended.
#[derive(Debug, Args)]
#[command(after_help = format!("Examples:\n  \
    interval-queue tasks copy --to sqlite:/backup/queues.db\n  \
    interval-queue tasks copy --to-queue checked --state failed --error timeout\n\n{SELECTOR}"))]
pub(super) struct Copy {
    #[command(flatten)]
    pub(super) transfer: TransferArgs,
}

/// Move tasks that have not ended to another queue or store, while workers run at both ends.
///
/// No task can start at both ends. A running task follows when its run has ended, if it is to run
/// again. Tasks added meanwhile follow, too: the move ends when no selected task is left. At the
/// source a moved task is cancelled, and its error names the destination. Repeat an interrupted
/// move: it continues.
#[derive(Debug, Args)]
#[command(after_help = format!("Examples:\n  \
    interval-queue tasks move --to postgres://db/work --all\n  \
    interval-queue tasks move --to-queue slow --kind report\n\n{SELECTOR}"))]
pub(super) struct Move {
    #[command(flatten)]
    pub(super) transfer: TransferArgs,
    /// Select all tasks of the queue that have not ended; required if nothing else selects
    #[arg(long)]
    all: bool,
}

/// The destination, and the tasks.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("destination").args(["to", "to_queue"]).required(true).multiple(true))]
pub(super) struct TransferArgs {
    /// Store of the destination: sqlite:PATH, dir:PATH, redis://HOST or postgres://HOST/DATABASE.
    /// Default: this store
    #[arg(long, value_name = "URL", value_parser = store_url)]
    to: Option<String>,
    /// Queue of the destination. Default: the same name
    #[arg(long, value_name = "NAME", allow_hyphen_values = true)]
    to_queue: Option<QueueName>,
    #[command(flatten)]
    pub(super) selector: SelectorArgs,
    /// Print no progress
    #[arg(short, long)]
    quiet: bool,
    /// Print one JSON object; `interval-queue schema tasks` describes its fields
    #[arg(long)]
    json: bool,
}

pub(super) async fn copy(target: &Target, tasks: &Tasks, copy: &Copy) -> Result<(), Failure> {
    let (selector, _) = tasks.selector(&copy.transfer.selector).await?;
    transfer(target, tasks, &copy.transfer, selector, false).await
}

pub(super) async fn move_tasks(target: &Target, tasks: &Tasks, args: &Move) -> Result<(), Failure> {
    let (selector, _) = tasks.selector(&args.transfer.selector).await?;
    if selector.is_all() && !args.all {
        let text = "no tasks are selected: give ids, select by --state, --kind, --flow, …, or give --all";
        return Err(Failure::new(USAGE, text));
    }
    transfer(target, tasks, &args.transfer, selector, true).await
}

async fn transfer(
    target: &Target,
    tasks: &Tasks,
    args: &TransferArgs,
    selector: Selector,
    moves: bool,
) -> Result<(), Failure> {
    let overview = tasks.overview().await?.ok_or_else(|| tasks.missing())?;
    check(tasks, &selector, moves).await?;
    let url = args.to.clone().unwrap_or_else(|| target.store.url.clone());
    let queue = args.to_queue.clone().unwrap_or_else(|| target.queue.clone());
    let to = Target { store: StoreArgs { url }, queue };
    let (from, there) = (open_queue(target).await?, made_like(&to, &overview).await?);
    let bar = bar(args.quiet);
    let show_progress = |so_far: &Transferred| bar.set_message(in_words(so_far, moves));
    let transferred = match moves {
        true => from.move_to(&there, &selector, &name_of(&to), show_progress).await,
        false => from.copy_to(&there, &selector, show_progress).await,
    };
    let so_far = bar.message();
    bar.finish_and_clear();
    let transferred = transferred.map_err(|error| {
        let failure = Failure::from(&error);
        match so_far.is_empty() {
            true => failure,
            false => Failure {
                message: format!("{}; {so_far} before: run the command again to continue", failure.message),
                ..failure
            },
        }
    })?;
    if args.json {
        let Transferred { new, again, kept, taken, .. } = &transferred;
        let taken: Vec<_> = taken.iter().map(|(id, holder)| json!({ "id": id, "holder": holder })).collect();
        let object = json!({ "to": name_of(&to), "new": new, "again": again, "kept": kept, "taken": taken });
        print(&format!("{object:#}"))?;
    }
    report(&in_words(&transferred, moves));
    if let Some((id, holder)) = transferred.taken.first() {
        let text = format!(
            "{} not transferred, since tasks at the destination hold their unique names; the name of {id} is held by \
             task {holder}",
            task_words::tasks(transferred.taken.len() as u64)
        );
        return Err(Failure::new(TEMPFAIL, text));
    }
    match transferred.kept.first() {
        None => Ok(()),
        Some(first) => Err(Failure::new(
            TEMPFAIL,
            format!(
                "{} not transferred, {first} for example: their upstreams were not selected and have not ended; select \
                 the upstreams, too, or run the command again later",
                task_words::tasks(transferred.kept.len() as u64)
            ),
        )),
    }
}

/// Checks the selection, before anything is created at the destination.
async fn check(tasks: &Tasks, selector: &Selector, moves: bool) -> Result<(), Failure> {
    if moves && !selector.states.is_empty() && selector.states.iter().all(|state| state.is_ended()) {
        return Err(Failure::new(USAGE, "a move takes tasks that have not ended: copy ended tasks"));
    }
    let rows = tasks.rows(selector.ids.clone()).await?;
    match selector.ids.iter().find(|id| rows.iter().all(|row| row.id != **id)) {
        Some(unknown) => tasks.existing(*unknown).await.map(drop),
        None => Ok(()),
    }
}

/// The queue at the destination. A new one gets the settings of the source.
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
    Tasks::open(to).await?.query(open).await?;
    open_queue(to).await
}

/// The destination, for the error of a moved task, in at most `MAX_LABEL` bytes.
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
    let verb = if moves { "moved" } else { "copied" };
    let mut words = format!("{} {verb}", task_words::tasks(so_far.new));
    if so_far.again > 0 {
        words += &format!(", {} existed before", so_far.again);
    }
    if so_far.running > 0 {
        let rest = if moves { "not moved yet" } else { "running, copied when their runs end" };
        words += &format!(", {} {rest}", so_far.running);
    }
    words
}
