//! `tasks`: the status of a queue of stored tasks, the conditions in force, and the rate.

use std::{collections::BTreeMap, time::Duration};

use indicatif::HumanCount;
use interval_queue::{
    Micros, Snapshot,
    task_contract::{Counted, Kind, Overview, Task, Worker},
};
use interval_queue_tasks::{Condition, QueueStatus};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{
    counts::{Counts, Rate, counts_json, ever, left, rate_in_words, share, states, total},
    json,
    queue_tasks::Tasks,
    status_text, task_words,
    workers::{run_line, runs},
};
use crate::{
    args::Target,
    duration::about,
    exit::{Failure, print},
    table::{named, room, table},
};

/// Maximum conditions that are printed, one per line.
const MAX_CONDITIONS: usize = 20;

/// A queue and its workers.
struct QueueView {
    overview: Overview,
    workers: Vec<Worker>,
    pace: Option<Snapshot>,
    /// The run that began first.
    longest: Option<Task>,
}

/// The run that began first. A hundred tasks of each worker are read.
pub(super) async fn longest(tasks: &Tasks, workers: &[Worker]) -> Result<Option<Task>, Failure> {
    Ok(runs(tasks, workers).await?.into_iter().next())
}

/// Prints the status of the queue.
pub(super) async fn print_status(
    target: &Target,
    tasks: &Tasks,
    over: Duration,
    as_json: bool,
) -> Result<(), Failure> {
    let first = tasks.overview().await?.ok_or_else(|| tasks.missing())?;
    let (overview, rate) = if over.is_zero() || left(&total(&first)) == 0 {
        (first, None)
    } else {
        sleep(over).await;
        let second = tasks.overview().await?.ok_or_else(|| tasks.missing())?;
        let rate = Rate::between((first.at, &total(&first)), (second.at, &total(&second)));
        (second, rate)
    };
    let workers = tasks.workers().await?;
    let longest = longest(tasks, &workers).await?;
    let view = QueueView { overview, workers, pace: target.snapshot().await?, longest };
    let queue = tasks.queue.as_str();
    if as_json {
        return print(&format!("{:#}", object(queue, &view, rate)));
    }
    print(&text(queue, &view, rate, room()))
}

fn text(queue: &str, view: &QueueView, rate: Option<Rate>, room: usize) -> String {
    let overview = &view.overview;
    let counts = total(overview);
    let status = QueueStatus::of(overview, view.pace.as_ref());
    let mut lines = vec![
        named("queue", queue, room),
        named("tasks", &states(&counts), room),
        named("runs", &status_text::text(&status.condition), room),
    ];
    lines.extend(in_force(&status.also).map(|line| named("", &line, room)));
    if let Some(oldest) = overview.oldest {
        lines.push(named("oldest", &oldest_in_words(overview.at - oldest), room));
    }
    if let Some(longest) = &view.longest {
        lines.push(named("longest", &run_line(longest, overview.at), room));
    }
    if let Some(rate) = rate {
        let hint = if rate.ended == 0 { "; --over measures for longer" } else { "" };
        lines.push(named("rate", &format!("{}{hint}", rate_in_words(rate, left(&counts))), room));
    }
    if let Some(share) = share(&counts) {
        lines.push(named("ended", &share, room));
    }
    let mut page = lines.join("\n");
    let rows = rows(overview);
    if rows.len() > 1 {
        page += &format!("\n\n{}", table(["KIND", "TASKS", "EVER DONE", "EVER FAILED"], &rows, room));
    }
    let rows: Vec<_> = view.workers.iter().map(row).collect();
    match rows.as_slice() {
        [] => page += "\nworkers  none within the last hour",
        rows => page += &format!("\n\n{}", table(["WORKER", "ID", "KINDS", "HAS", "LEASE LEFT"], rows, room)),
    }
    page
}

/// A line for each condition, at most [`MAX_CONDITIONS`].
fn in_force(also: &[Condition]) -> impl Iterator<Item = String> {
    let more = also.len().saturating_sub(MAX_CONDITIONS);
    let more = (more > 0).then(|| format!("and {more} more: --json prints them"));
    also.iter().take(MAX_CONDITIONS).map(status_text::text).chain(more)
}

/// Adds the fields of one object to another.
pub(super) fn extend(object: &mut Value, more: Value) {
    if let (Value::Object(object), Value::Object(more)) = (object, more) {
        object.extend(more);
    }
}

pub(super) fn oldest_in_words(age: Micros) -> String {
    format!("a task has been ready for {}", about(age))
}

/// A row for each kind.
fn rows(overview: &Overview) -> Vec<[String; 4]> {
    let mut kinds: BTreeMap<&Kind, Counts> = BTreeMap::new();
    for (kind, counted, count) in &overview.counts {
        kinds.entry(kind).or_default().insert(*counted, *count);
    }
    let row = |(kind, counts): (&Kind, Counts)| {
        let number = |counted| HumanCount(ever(&counts, counted)).to_string();
        [kind.to_string(), states(&counts), number(Counted::EverDone), number(Counted::EverFailed)]
    };
    kinds.into_iter().map(row).collect()
}

fn row(worker: &Worker) -> [String; 5] {
    let presence = &worker.presence;
    let kinds: Vec<_> = presence.kinds.iter().map(ToString::to_string).collect();
    let left = match worker.alive_for {
        Some(left) => about(left),
        None => format!("gone; last seen {}", task_words::time(presence.seen)),
    };
    let holds = worker.holds.len();
    let holds = if holds < 100 { holds.to_string() } else { "100 or more".into() };
    [presence.label.to_string(), presence.worker.to_string(), kinds.join(", "), holds, left]
}

fn object(queue: &str, view: &QueueView, rate: Option<Rate>) -> Value {
    let QueueView { overview, workers, pace, .. } = view;
    let counts = total(overview);
    let mut kinds: BTreeMap<&Kind, Counts> = BTreeMap::new();
    for (kind, counted, count) in &overview.counts {
        kinds.entry(kind).or_default().insert(*counted, *count);
    }
    let kinds = kinds.iter().map(|(kind, counts)| {
        let row = overview.kinds.iter().find(|row| row.kind == **kind);
        json!({
            "kind": kind,
            "paused": row.is_some_and(|row| row.paused),
            "served": row.is_some() && !overview.unserved.contains(kind),
            "counts": counts_json(counts),
        })
    });
    let since = |at: Option<Micros>| at.map(|at| (overview.at - at).get());
    let mut object = json!({
        "queue": queue,
        "left": left(&counts),
        "counts": counts_json(&counts),
        "kinds": kinds.collect::<Vec<_>>(),
        "oldest_ready_us": since(overview.oldest),
        "longest_run": view.longest.as_ref().map(json::row),
        "next_in_us": overview.next.map(|at| (at - overview.at).get()),
        "rate": rate.map(|rate| json!({
            "over_us": u64::try_from(rate.over.as_micros()).unwrap_or(u64::MAX),
            "ended": rate.ended,
            "added": rate.added,
        })),
        "max_running": overview.settings.max_running,
        "workers": workers.iter().map(json::worker).collect::<Vec<_>>(),
    });
    extend(&mut object, status_text::fields(overview, pace.as_ref()));
    object
}
