//! `delete` and `prune`: deletion of queues.

use std::{
    io::{self, IsTerminal},
    time::Duration,
};

use clap::Args;
use interval_queue::{
    Deletion, ErrorKind, Micros, Operators, QueueName, Snapshot, StateErrorKind, Store, refuses,
};
use interval_queue_documents::{duration::positive, words::about};
use interval_queue_tasks::{MIN_LEASE, TaskQueues};
use tokio::time::sleep;

use crate::{
    args::{StoreArgs, Target},
    exit::{Failure, NOINPUT, TEMPFAIL, USAGE, print, report},
    target::{bounded, snapshot},
    tasks::Content,
};

/// Delete queues with their rates, tasks and schedules.
///
/// The command lists what it would delete and asks once. It refuses a queue in which live processes
/// wait or run, and names them. It also refuses a queue whose tasks a worker serves.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  interval-queue delete --store redis://localhost customer-7 customer-8
  interval-queue delete --yes api              # in a script: without asking
  interval-queue delete --force --yes api      # although processes wait in it

Forced deletion:
  Waiting processes create the queue again and continue. A queue whose tasks a
  worker serves is refused also with --force: stop its workers first.

Notes:
  The ids of deleted tasks are kept for at least 20 minutes, so that a repeated
  `add` does not run a task again. An interrupted deletion leaves the queue
  paused and partly deleted: run the command again. A service that has the
  queue open without jobs creates it again with its next job. A command that is
  started meanwhile may start at once, as in any new queue, and needs
  --every.")]
pub(crate) struct Delete {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// Delete queues also while processes wait or run in them
    #[arg(long)]
    pub(crate) force: bool,
    /// Do not ask; required without a terminal
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Names of the queues; INTERVAL_QUEUE_NAME is not used
    #[arg(value_name = "NAME", required = true)]
    pub(crate) queues: Vec<QueueName>,
}

/// Delete queues that were not used for some time.
///
/// It keeps queues that are paused or held, that have a slot ahead, or in which live processes wait
/// or run. Reading a queue does not count as use. It prints a line for each deleted queue.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  interval-queue prune --idle-for 30days --dry-run
  # In a crontab that sets INTERVAL_QUEUE_STORE:
  0 3 * * * interval-queue prune --idle-for 30days

Redis deletes idle queues by itself, after its ?idle_expiry (7days), unless
they are paused.")]
pub(crate) struct Prune {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// Delete queues that were not used for at least this long
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true, value_parser = positive)]
    pub(crate) idle_for: Duration,
    /// Print what would be deleted, and delete nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

pub(crate) async fn run(delete: Delete) -> Result<(), Failure> {
    let store = delete.store.store().await?;
    let deletion = if delete.force { Deletion::Forced } else { Deletion::Unused };
    let mut first_failure = Ok(());
    let mut plan = Vec::new();
    let tasks = delete.store.task_queues().await?;
    let operators = delete.store.operators().await?;
    for queue in &delete.queues {
        plan.push((queue, Plan::of(&operators, tasks.as_ref(), queue).await));
    }
    let goes: Vec<_> = plan.iter().filter_map(|(queue, plan)| Some((queue, plan.as_ref().ok()?))).collect();
    if !goes.is_empty() && !delete.yes {
        for (queue, plan) in &goes {
            report(&format!("{queue}: {}", plan.in_words()));
        }
        if !is_agreed(goes.len())? {
            return Err(Failure::new(TEMPFAIL, "nothing was deleted"));
        }
    }
    for (queue, plan) in plan {
        let outcome = match plan {
            Ok(plan) => plan.execute(&delete.store, &store, queue, deletion).await,
            Err(failure) => Err(failure),
        };
        let outcome = outcome.and_then(|()| print(&format!("{queue}: deleted")));
        first_failure = keep_first(first_failure, outcome);
    }
    first_failure
}

/// A worker that has left still counts for the shortest lease. Includes a margin of 200 ms.
const LEAVE_DELAY: Duration = Duration::from_millis(MIN_LEASE.get() / 1_000 + 200);

struct Plan {
    pace: Option<Snapshot>,
    tasks: Option<Content>,
}

impl Plan {
    /// # Errors
    ///
    /// There is no such queue, or a worker serves its tasks.
    async fn of(
        operators: &Operators,
        tasks: Option<&TaskQueues>,
        queue: &QueueName,
    ) -> Result<Self, Failure> {
        let find = async || {
            let Some(tasks) = tasks else { return Ok(None) };
            match tasks.find(queue).await? {
                Some((queue, overview)) => Content::of(&queue, overview).await,
                None => Ok(None),
            }
        };
        let mut tasks = find().await?;
        if tasks.as_ref().is_some_and(|content| content.in_use().is_some()) {
            sleep(LEAVE_DELAY).await;
            tasks = find().await?;
        }
        let pace = snapshot(&operators.of(queue)).await?;
        match tasks.as_ref().and_then(Content::in_use) {
            Some(why) => {
                Err(Failure::new(TEMPFAIL, format!("{queue}: {why}; nothing of the queue was deleted")))
            }
            None if pace.is_none() && tasks.is_none() => Err(refused(queue, Failure::new(NOINPUT, ""))),
            None => Ok(Self { pace, tasks }),
        }
    }

    fn in_words(&self) -> String {
        let pace = self.pace.as_ref().map(|snapshot| {
            let idle = about(snapshot.at - snapshot.record.seen_at);
            format!("its rate, {}, last used {idle} ago", crate::rate::pace(&snapshot.record.meters.rates()))
        });
        let tasks = self.tasks.as_ref().map(Content::in_words);
        let parts: Vec<_> = [tasks, pace].into_iter().flatten().collect();
        format!("{}, would be deleted", parts.join("; and "))
    }

    /// Deletes the rate limit first: the store rejects that if a process waits or runs there.
    async fn execute(
        self,
        args: &StoreArgs,
        store: &Store,
        queue: &QueueName,
        deletion: Deletion,
    ) -> Result<(), Failure> {
        if self.pace.is_some() {
            delete_queue(store, queue, deletion).await.map_err(|failure| refused(queue, failure))?;
        }
        if self.tasks.is_some() {
            let target = Target { store: args.clone(), queue: queue.clone() };
            let deleted = target.tasks().await?.delete().await;
            deleted
                .map_err(|error| Failure { message: format!("{queue}: {error}"), ..Failure::from(&error) })?;
        }
        Ok(())
    }
}

fn is_agreed(many: usize) -> Result<bool, Failure> {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        let text = "delete asks before it deletes: without a terminal, give --yes";
        return Err(Failure::new(USAGE, text));
    }
    let what = if many == 1 { "it".to_owned() } else { format!("these {many} queues") };
    eprint!("interval-queue: delete {what}? [y/N] ");
    let mut answer = String::new();
    io::stdin().read_line(&mut answer).map_err(|error| Failure::os("cannot read the answer", &error))?;
    Ok(["y", "yes"].contains(&answer.trim().to_lowercase().as_str()))
}

pub(crate) async fn prune(prune: Prune) -> Result<(), Failure> {
    let store = prune.store.store().await?;
    let operators = prune.store.operators().await?;
    let names = bounded(async { Ok(store.queues().await?) }).await?;
    let deletion = Deletion::Idle(Micros::from_duration(prune.idle_for));
    let mut first_failure = Ok(());
    let (queues, mut idle_queues) = (names.len(), 0);
    for queue in names {
        let outcome = prune_one(&store, &operators, &queue, deletion, prune.dry_run).await;
        let outcome = outcome.map(|is_idle| idle_queues += u32::from(is_idle));
        let outcome = outcome
            .map_err(|failure| Failure { message: format!("queue {queue}: {}", failure.message), ..failure });
        first_failure = keep_first(first_failure, outcome);
    }
    if prune.dry_run && idle_queues == 0 && first_failure.is_ok() {
        report(&format!("dry run: no queue would be deleted, of {queues} in the store"));
    }
    first_failure
}

/// Returns whether the queue is idle.
async fn prune_one(
    store: &Store,
    operators: &Operators,
    queue: &QueueName,
    deletion: Deletion,
    dry_run: bool,
) -> Result<bool, Failure> {
    // Already deleted by another process: nothing to do.
    let Some(found) = snapshot(&operators.of(queue)).await? else { return Ok(false) };
    if refuses(&found, deletion).is_some() {
        return Ok(false);
    }
    let idle = about(found.at - found.record.seen_at);
    if dry_run {
        return print(&format!("{queue}: would be deleted, not used for {idle}")).map(|()| true);
    }
    match delete_queue(store, queue, deletion).await {
        Ok(()) => print(&format!("{queue}: deleted, not used for {idle}")).map(|()| true),
        // In use again, or deleted by another process.
        Err(failure) if [TEMPFAIL, NOINPUT].contains(&failure.code) => Ok(false),
        Err(failure) => Err(failure),
    }
}

/// A queue in use fails with `TEMPFAIL`: the command line is not at fault.
async fn delete_queue(store: &Store, queue: &QueueName, deletion: Deletion) -> Result<(), Failure> {
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
        NOINPUT => format!("there is no queue {:?} in this store: see `interval-queue list`", queue.as_str()),
        TEMPFAIL => format!("{queue}: {} (--force)", failure.message),
        _ => format!("{queue}: {}", failure.message),
    };
    Failure { message, ..failure }
}

/// Prints each failure but the first, which gives the exit code.
fn keep_first(first: Result<(), Failure>, outcome: Result<(), Failure>) -> Result<(), Failure> {
    match (first, outcome) {
        (Ok(()), outcome) => outcome,
        (first, Err(further)) => {
            crate::exit::report(&further.message);
            first
        }
        (first, Ok(())) => first,
    }
}
