//! `delete` and `prune`: queues that nobody needs any more.

use std::time::Duration;

use clap::Args;
use interval_queue::{
    Deletion, ErrorKind, Micros, QueueName, Snapshot, StateErrorKind, Store,
    contract::{Change, Command, Memory, Reading, SharedState, StateError, rules},
};

use crate::{
    args::State,
    duration::{positive, show},
    exit::{Failure, NOINPUT, TEMPFAIL, print},
    target::{bounded, look},
};

/// Delete queues that nobody uses.
///
/// Nothing of them is stored any more: not the tickets, the interval, a pause or a hold. A queue that living
/// processes wait or run in is refused, with their names.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  interval-queue delete --state redis://localhost customer-7 customer-8
  interval-queue delete --force api    # those that wait bring it back and go on

A service that has the queue open without jobs brings it back with its next one.
A command that is started meanwhile may start at once, as in any new queue, and
needs --every.")]
pub(crate) struct Delete {
    #[command(flatten)]
    pub(crate) state: State,
    /// Delete them also while processes wait or run in them
    #[arg(long)]
    pub(crate) force: bool,
    /// The queues. Not taken from INTERVAL_QUEUE_NAME
    #[arg(value_name = "NAME", required = true)]
    pub(crate) queues: Vec<QueueName>,
}

/// Delete the queues that were not used for some time.
///
/// Those stay that are paused or held, that have a slot ahead, or that living processes wait or run in.
/// Looking at a queue is no use of it. Prints a line for each that goes.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  interval-queue prune --idle-for 30days --dry-run --state postgres://user@db.internal/jobs
  0 3 * * * interval-queue prune --idle-for 30days    # in a crontab that sets INTERVAL_QUEUE_STATE

Redis forgets idle queues by itself, after its ?idle_expiry (7days), but not
those that are paused.")]
pub(crate) struct Prune {
    #[command(flatten)]
    pub(crate) state: State,
    /// How long nobody used them, at least
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true, value_parser = positive)]
    pub(crate) idle_for: Duration,
    /// Print what would go, and delete nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

pub(crate) async fn delete(delete: Delete) -> Result<(), Failure> {
    let store = delete.state.store().await?;
    let deletion = if delete.force { Deletion::Forced } else { Deletion::Unused };
    let mut first_failure = Ok(());
    for queue in &delete.queues {
        let outcome = match carry_out(&store, queue, deletion).await {
            Ok(()) => print(&format!("{queue}: deleted")),
            Err(failure) => Err(refused(queue, failure)),
        };
        first_failure = keep_first(first_failure, outcome);
    }
    first_failure
}

pub(crate) async fn prune(prune: Prune) -> Result<(), Failure> {
    let store = prune.state.store().await?;
    let state = bounded(async { Ok(store.pace().await?) }).await?;
    let names = bounded(async { Ok(store.queues().await?) }).await?;
    let deletion = Deletion::Idle(Micros::from_duration(prune.idle_for));
    let mut first_failure = Ok(());
    for queue in names {
        let outcome = prune_one(&store, &*state, &queue, deletion, prune.dry_run).await;
        let outcome = outcome
            .map_err(|failure| Failure { message: format!("queue {queue}: {}", failure.message), ..failure });
        first_failure = keep_first(first_failure, outcome);
    }
    first_failure
}

async fn prune_one(
    store: &Store,
    state: &dyn SharedState,
    queue: &QueueName,
    deletion: Deletion,
    dry_run: bool,
) -> Result<(), Failure> {
    // One that has gone in between is gone.
    let Some(snapshot) = look(state, queue).await? else { return Ok(()) };
    if would_refuse(&snapshot, deletion).is_some() {
        return Ok(());
    }
    let idle = show(snapshot.at - snapshot.record.seen_at);
    if dry_run {
        return print(&format!("{queue}: would be deleted, not used for {idle}"));
    }
    match carry_out(store, queue, deletion).await {
        Ok(()) => print(&format!("{queue}: deleted, not used for {idle}")),
        // Somebody uses it again, or was quicker.
        Err(failure) if [TEMPFAIL, NOINPUT].contains(&failure.code) => Ok(()),
        Err(failure) => Err(failure),
    }
}

/// What the state would say now.
fn would_refuse(snapshot: &Snapshot, deletion: Deletion) -> Option<StateError> {
    let command = Command::Change(Change::Delete(deletion), Memory::default());
    rules::apply(&mut Some(snapshot.record.clone()), &Reading::of_clock(snapshot.at), &command).err()
}

/// Deletes a queue. One that is used is none that the command line could have named better.
async fn carry_out(store: &Store, queue: &QueueName, deletion: Deletion) -> Result<(), Failure> {
    bounded(async {
        store.delete(queue, deletion).await.map_err(|error| {
            let is_used = error.kind() == ErrorKind::State
                && error.state().is_some_and(|state| state.kind() == StateErrorKind::Conflict);
            let failure = Failure::from(error);
            if is_used { Failure { code: TEMPFAIL, ..failure } } else { failure }
        })
    })
    .await
}

fn refused(queue: &QueueName, failure: Failure) -> Failure {
    let message = match failure.code {
        NOINPUT => format!("there is no queue {:?} here: see `interval-queue list`", queue.as_str()),
        TEMPFAIL => format!("{queue}: {} (--force)", failure.message),
        _ => format!("{queue}: {}", failure.message),
    };
    Failure { message, ..failure }
}

/// The first failure is what the process ends with; each further one is said when it comes.
fn keep_first(first: Result<(), Failure>, outcome: Result<(), Failure>) -> Result<(), Failure> {
    match (first, outcome) {
        (Ok(()), outcome) => outcome,
        (first, Err(further)) => {
            crate::exit::say(&further.message);
            first
        }
        (first, Ok(())) => first,
    }
}
