//! `tasks copy` and `tasks move`: transfer tasks to another queue, in the same store or another
//! one.

use std::hash::{DefaultHasher, Hash, Hasher};

use clap::{ArgGroup, Args};
use interval_queue::QueueName;
use interval_queue_documents::{Transfer as Document, words};
use interval_queue_tasks::{MAX_MOVED_TO, Selector, TaskQueue, Transferred};

use super::{
    opened::{existing, require_selection, selector},
    task_args::{SELECTOR, SelectorArgs},
    wait::bar,
};
use crate::{
    args::{StoreArgs, Target, store_url},
    exit::{Failure, TEMPFAIL, USAGE, report},
    json_output::print_json,
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

pub(super) async fn copy(target: &Target, copy: &Copy) -> Result<(), Failure> {
    let queue = target.tasks_for_long().await?;
    let selector = selector(&queue, &copy.transfer.selector).await?;
    transfer(target, &queue, &copy.transfer, selector, false).await
}

pub(super) async fn move_tasks(target: &Target, args: &Move) -> Result<(), Failure> {
    let queue = target.tasks_for_long().await?;
    let selector = selector(&queue, &args.transfer.selector).await?;
    require_selection(&selector, args.all)?;
    transfer(target, &queue, &args.transfer, selector, true).await
}

async fn transfer(
    target: &Target,
    from: &TaskQueue,
    args: &TransferArgs,
    selector: Selector,
    moves: bool,
) -> Result<(), Failure> {
    check(from, &selector, moves).await?;
    let url = args.to.clone().unwrap_or_else(|| target.store.url.clone());
    let queue = args.to_queue.clone().unwrap_or_else(|| target.queue.clone());
    let to = Target { store: StoreArgs { url }, queue };
    let settings = from.overview().await?.settings;
    let there = to.created_tasks_with(&settings).await?;
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
        print_json(&Document::of(name_of(&to), &transferred))?;
    }
    report(&in_words(&transferred, moves));
    if let Some((id, holder)) = transferred.taken.first() {
        let text = format!(
            "{} not transferred, since tasks at the destination hold their unique names; the name of {id} is held by \
             task {holder}",
            words::tasks(transferred.taken.len() as u64)
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
                words::tasks(transferred.kept.len() as u64)
            ),
        )),
    }
}

/// Called before anything is created at the destination.
async fn check(queue: &TaskQueue, selector: &Selector, moves: bool) -> Result<(), Failure> {
    if moves && !selector.states.is_empty() && selector.states.iter().all(|state| state.is_ended()) {
        return Err(Failure::new(USAGE, "a move takes tasks that have not ended: copy ended tasks"));
    }
    for &id in &selector.ids {
        existing(queue, id).await?;
    }
    Ok(())
}

/// For the error of a moved task, in at most `MAX_MOVED_TO` bytes.
fn name_of(to: &Target) -> String {
    let whole = format!("{} in {}", to.queue.as_str(), without_secrets(&to.store.url));
    if whole.len() <= MAX_MOVED_TO {
        return whole;
    }
    let mut hasher = DefaultHasher::new();
    whole.hash(&mut hasher);
    let tail = format!("… {:016x}", hasher.finish());
    let fits = |at: &usize| whole.is_char_boundary(*at);
    let cut = (0..=MAX_MOVED_TO - tail.len()).rev().find(fits).unwrap_or(0);
    format!("{}{tail}", &whole[..cut])
}

fn in_words(so_far: &Transferred, moves: bool) -> String {
    let verb = if moves { "moved" } else { "copied" };
    let mut words = format!("{} {verb}", words::tasks(so_far.new));
    if so_far.again > 0 {
        words += &format!(", {} existed before", so_far.again);
    }
    if so_far.running > 0 {
        let rest = if moves { "not moved yet" } else { "running, copied when their runs end" };
        words += &format!(", {} {rest}", so_far.running);
    }
    words
}
