//! `tasks workers`: the workers of a queue, and their runs.

use interval_queue::Micros;
use interval_queue_documents::{Workers, words};
use interval_queue_tasks::{ABOVE_ALL, StoredTask, StoredWorker};

use super::task_args::{self, WorkersAction};
use crate::{
    args::Target,
    exit::{Failure, NOINPUT, print_as_it_is, report},
    json_output::print_json,
};

const MAX_RUNS_PRINTED: usize = 10;
const MAX_RUNS_READ: usize = 100;

pub(super) async fn workers(target: &Target, args: &task_args::Workers) -> Result<(), Failure> {
    let queue = target.tasks().await?;
    if let Some(WorkersAction::Lost(lost)) = &args.action {
        for &worker in &lost.workers {
            queue.declare_lost(worker).await?;
            report(&format!("worker {worker} is declared lost: its tasks are retried by their policy"));
        }
        return Ok(());
    }
    let now = queue.now().await?;
    let mut workers = queue.workers().await?;
    let runs = queue.runs(&workers).await?;
    if args.json {
        return print_json(&Workers::of(now, &workers, &runs));
    }
    if workers.is_empty() {
        return Err(Failure::new(
            NOINPUT,
            "no worker polled within the last hour: `interval-queue work` starts one",
        ));
    }
    workers.sort_by_key(|worker| (worker.alive_for.is_none(), worker.presence.since));
    let blocks: Vec<_> = workers.iter().map(|worker| block(worker, &runs, now)).collect();
    print_as_it_is(blocks.join("\n").as_bytes())
}

fn block(worker: &StoredWorker, runs: &[StoredTask], now: Micros) -> String {
    let presence = &worker.presence;
    let mut block = format!("{}\n", described(worker, now));
    let own: Vec<_> = runs.iter().filter(|task| task.worker == Some(presence.worker)).collect();
    for task in own.iter().take(MAX_RUNS_PRINTED) {
        block += &format!("  {}\n", run_line(task, now));
    }
    match own.len().saturating_sub(MAX_RUNS_PRINTED) {
        0 if own.is_empty() => block += "  runs nothing\n",
        0 => {}
        more if own.len() >= MAX_RUNS_READ => block += &format!("  and at least {more} more\n"),
        more => block += &format!("  and {more} more\n"),
    }
    block
}

pub(super) fn described(worker: &StoredWorker, now: Micros) -> String {
    let presence = &worker.presence;
    let kinds: Vec<_> = presence.kinds.iter().map(ToString::to_string).collect();
    let seen = words::about(now - presence.seen);
    let life = match worker.alive_for {
        Some(left) => format!("last seen {seen} ago, its lease ends in {}", words::about(left)),
        None => format!("last seen {seen} ago, its lease has ended"),
    };
    let takes = match presence.at_least {
        Some(ABOVE_ALL..) => ", is under load and takes no tasks".into(),
        Some(least) => format!(", is under load and takes only priority {least} and higher"),
        None => String::new(),
    };
    let room = presence.room.map_or(String::new(), |room| format!(", has capacity left for weight {room}"));
    let label = words::line(presence.label.as_str());
    format!(
        "{label} ({}): serves {}{takes}{room}; started {}; {life}",
        presence.worker,
        kinds.join(", "),
        words::time(presence.since)
    )
}

pub(crate) fn run_line(task: &StoredTask, now: Micros) -> String {
    let long = task.leased.map_or(String::new(), |leased| format!("  for {}", words::about(now - leased)));
    let at = task.progress.as_ref().map_or(String::new(), |at| format!("  {}", words::progress(at)));
    format!("{}  {}{long}{at}", task.id, task.kind)
}

pub(crate) fn upcoming_line(task: &StoredTask, now: Micros) -> String {
    let priority = match task.priority {
        0 => String::new(),
        priority => format!("  priority {priority}"),
    };
    format!("{}  {}  added {} ago{priority}", task.id, task.kind, words::about(now - task.added))
}
