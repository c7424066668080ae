//! `tasks`: the status of a queue of stored tasks, the conditions in force, and the rate.

use std::time::Duration;

use interval_queue::Micros;
use interval_queue_documents::{Counts, Measured, Queue, words};
use interval_queue_tasks::{Condition, Counter, Overview, QueueStatus, StoredWorker};
use tokio::time::sleep;

use super::workers::run_line;
use crate::{
    args::Target,
    exit::{Failure, print},
    json_output::print_json,
    table::{named, room, table},
};

const MAX_CONDITIONS: usize = 20;

pub(super) async fn print_status(target: &Target, over: Duration, as_json: bool) -> Result<(), Failure> {
    let (queue, first) = target.tasks_and_overview().await?;
    let (overview, measured) = if over.is_zero() || Counts::of(&first).left() == 0 {
        (first, None)
    } else {
        sleep(over).await;
        let second = queue.overview().await?;
        let before = (first.at, &Counts::of(&first));
        let measured = Measured::between(before, (second.at, &Counts::of(&second)));
        (second, measured)
    };
    let workers = queue.workers().await?;
    let longest = queue.runs(&workers).await?.into_iter().next();
    let rate = target.snapshot().await?;
    let name = target.queue.as_str();
    if as_json {
        let rate = rate.as_ref();
        return print_json(&Queue::of(name, &overview, rate, &workers, longest.as_ref(), measured));
    }
    let (counts, room) = (Counts::of(&overview), room());
    let status = QueueStatus::of(&overview, rate.as_ref());
    let mut lines = vec![
        named("queue", name, room),
        named("tasks", &words::states(&counts), room),
        named("runs", &words::condition(&status.condition), room),
    ];
    lines.extend(in_force(&status.also).map(|line| named("", &line, room)));
    if let Some(oldest) = overview.oldest {
        lines.push(named("oldest", &oldest_in_words(overview.at - oldest), room));
    }
    if let Some(longest) = &longest {
        lines.push(named("longest", &run_line(longest, overview.at), room));
    }
    if let Some(measured) = measured {
        let hint = if measured.ended == 0 { "; --over measures for longer" } else { "" };
        let seen = words::measured(measured, counts.left());
        lines.push(named("rate", &format!("{seen}{hint}"), room));
    }
    if let Some(share) = words::share(&counts) {
        lines.push(named("ended", &share, room));
    }
    let mut page = lines.join("\n");
    let rows = rows(&overview);
    if rows.len() > 1 {
        page += &format!("\n\n{}", table(["KIND", "TASKS", "EVER DONE", "EVER FAILED"], &rows, room));
    }
    let rows: Vec<_> = workers.iter().map(row).collect();
    match rows.as_slice() {
        [] => page += "\nworkers  none within the last hour",
        rows => page += &format!("\n\n{}", table(["WORKER", "ID", "KINDS", "HAS", "LEASE LEFT"], rows, room)),
    }
    print(&page)
}

/// At most [`MAX_CONDITIONS`] lines.
fn in_force(also: &[Condition]) -> impl Iterator<Item = String> {
    let more = also.len().saturating_sub(MAX_CONDITIONS);
    let more = (more > 0).then(|| format!("and {more} more: --json prints them"));
    also.iter().take(MAX_CONDITIONS).map(words::condition).chain(more)
}

pub(super) fn oldest_in_words(age: Micros) -> String {
    format!("a task has been ready for {}", words::about(age))
}

fn rows(overview: &Overview) -> Vec<[String; 4]> {
    let kinds = Counts::by_kind(overview).into_iter();
    let row = |(kind, counts): (_, Counts)| {
        let number = |counted| words::number(counts.get(counted));
        let (done, failed) = (number(Counter::EverDone), number(Counter::EverFailed));
        [ToString::to_string(kind), words::states(&counts), done, failed]
    };
    kinds.map(row).collect()
}

fn row(worker: &StoredWorker) -> [String; 5] {
    let presence = &worker.presence;
    let kinds: Vec<_> = presence.kinds.iter().map(ToString::to_string).collect();
    let left = match worker.alive_for {
        Some(left) => words::about(left),
        None => format!("gone; last seen {}", words::time(presence.seen)),
    };
    let holds = worker.holds.len();
    let holds = if holds < 100 { holds.to_string() } else { "100 or more".into() };
    [presence.label.to_string(), presence.worker.to_string(), kinds.join(", "), holds, left]
}
