//! `tasks workers`: the workers of a queue, and their runs.

use std::collections::HashMap;

use interval_queue::{
    Micros,
    task_contract::{ABOVE_ALL, Progress, Task, TaskId, Worker},
};
use serde_json::json;

use super::{json, queue_tasks::Tasks, task_args, task_words};
use crate::{
    duration::about,
    exit::{Failure, NOINPUT, print, print_as_it_is},
};

/// Maximum runs that are printed per worker.
const MAX_RUNS_PRINTED: usize = 10;
/// Maximum runs that are read per worker.
const MAX_RUNS_READ: usize = 100;

/// Whether the lease of a worker is in force, by the lease clock of the store.
pub(super) fn is_alive(worker: &Worker) -> bool {
    worker.alive_for.is_some()
}

/// The runs of workers, the earliest first, at most a hundred per worker.
pub(super) async fn runs(tasks: &Tasks, workers: &[Worker]) -> Result<Vec<Task>, Failure> {
    let held: HashMap<TaskId, _> = workers.iter().flat_map(|worker| worker.holds.iter().copied()).collect();
    let mut runs = tasks.rows(held.keys().copied().collect()).await?;
    // Tasks that have ended meanwhile are not running.
    runs.retain(|task| {
        task.leased.is_some() && held.get(&task.id) == Some(&task.token) && !task.state.is_ended()
    });
    runs.sort_by_key(|task| (task.leased, task.id));
    Ok(runs)
}

pub(super) async fn workers(tasks: &Tasks, args: &task_args::Workers) -> Result<(), Failure> {
    let now = tasks.now().await?;
    let mut workers = tasks.workers().await?;
    let runs = runs(tasks, &workers).await?;
    if args.json {
        let of = |worker: &Worker| {
            let mut object = json::worker(worker);
            let own = runs.iter().filter(|task| task.worker == Some(worker.presence.worker));
            object["runs"] = own.map(json::row).collect();
            object
        };
        let all: Vec<_> = workers.iter().map(of).collect();
        return print(&format!("{:#}", json!({ "at_us": now.get(), "workers": all })));
    }
    if workers.is_empty() {
        return Err(Failure::new(
            NOINPUT,
            "no worker polled within the last hour: `interval-queue work` starts one",
        ));
    }
    workers.sort_by_key(|worker| (!is_alive(worker), worker.presence.since));
    let blocks: Vec<_> = workers.iter().map(|worker| block(worker, &runs, now)).collect();
    print_as_it_is(blocks.join("\n").as_bytes())
}

fn block(worker: &Worker, runs: &[Task], now: Micros) -> String {
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

/// Formats a worker on one line: its kinds, its last poll and its lease.
pub(super) fn described(worker: &Worker, now: Micros) -> String {
    let presence = &worker.presence;
    let kinds: Vec<_> = presence.kinds.iter().map(ToString::to_string).collect();
    let seen = about(now - presence.seen);
    let life = match worker.alive_for {
        Some(left) => format!("last seen {seen} ago, its lease ends in {}", about(left)),
        None => format!("last seen {seen} ago, its lease has ended"),
    };
    let takes = match presence.at_least {
        Some(ABOVE_ALL..) => ", is under load and takes no tasks".into(),
        Some(least) => format!(", is under load and takes only priority {least} and higher"),
        None => String::new(),
    };
    let room = presence.room.map_or(String::new(), |room| format!(", has capacity left for weight {room}"));
    let label = task_words::line(presence.label.as_str());
    format!(
        "{label} ({}): serves {}{takes}{room}; started {}; {life}",
        presence.worker,
        kinds.join(", "),
        task_words::time(presence.since)
    )
}

/// Formats a run on one line.
pub(crate) fn run_line(task: &Task, now: Micros) -> String {
    let long = task.leased.map_or(String::new(), |leased| format!("  for {}", about(now - leased)));
    let at = task.progress.as_ref().map_or(String::new(), |at| format!("  {}", progress(at)));
    format!("{}  {}{long}{at}", task.id, task.kind)
}

/// Formats an upcoming task on one line.
pub(crate) fn upcoming_line(task: &Task, now: Micros) -> String {
    let priority = match task.priority {
        0 => String::new(),
        priority => format!("  priority {priority}"),
    };
    format!("{}  {}  added {} ago{priority}", task.id, task.kind, about(now - task.added))
}

/// Formats the progress of a run.
pub(super) fn progress(at: &Progress) -> String {
    let of = if at.total > 0 { format!(" of {}", at.total) } else { String::new() };
    task_words::line(&format!("{}{of} {}", at.done, at.text))
}
