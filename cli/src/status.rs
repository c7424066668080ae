//! `status`: the state of a queue and the reason why nothing starts, for a person or a program.

use interval_queue::{Presence, QueueName, Snapshot};
use interval_queue_documents::{QueueStatus, Unpaced, in_order, words::about};

use crate::{
    args::Status,
    change::running,
    exit::{Failure, print},
    json_output::print_json,
    rate::pace,
    table::{named, room, table},
    tasks::StatusLines,
};

pub(crate) async fn run(status: Status) -> Result<(), Failure> {
    let target = &status.target;
    let pace = target.snapshot().await?;
    let tasks = match target.tasks_if_any().await? {
        Some((queue, overview)) => StatusLines::of(&queue, overview).await?,
        None => None,
    };
    let name = target.queue.as_str();
    match (&pace, &tasks) {
        (None, None) => return Err(target.missing()),
        (Some(snapshot), tasks) if status.json => {
            let tasks = tasks.as_ref().map(|tasks| tasks.document(Some(snapshot)));
            return print_json(&QueueStatus::of(name, snapshot, tasks));
        }
        (None, Some(tasks)) if status.json => return print_json(&Unpaced::of(name, tasks.document(None))),
        _ => {}
    }
    let page = match &pace {
        Some(snapshot) => text(&target.queue, snapshot, room()),
        // A queue of stored tasks need not have a rate.
        None => named("queue", name, room()),
    };
    let gap = if pace.is_some() { "\n\n" } else { "\n" };
    let stored = tasks.map(|stored| format!("{gap}{}", named("tasks", &stored.text(pace.as_ref()), room())));
    print(&format!("{page}{}", stored.unwrap_or_default()))
}

fn text(queue: &QueueName, snapshot: &Snapshot, room: usize) -> String {
    let record = &snapshot.record;
    let held_for = record.held_until - snapshot.at;
    let starts: String = match (record.paused, held_for.get()) {
        (true, 0) => "paused: `interval-queue resume` ends it".into(),
        (true, _) => format!("paused, and held for another {}", about(held_for)),
        (false, 0) => "neither paused nor held".into(),
        (false, _) => format!("held for another {}", about(held_for)),
    };
    let tickets = format!(
        "{} taken, current {}, at most {} outstanding",
        record.ticket,
        record.current,
        record.ticket.behind(record.current)
    );
    let lines = [
        named("queue", queue.as_str(), room),
        named("rate", &pace(&record.meters.rates()), room),
        named("starts", &starts, room),
        named("next", &snapshot.start_status().to_string(), room),
        named("tickets", &tickets, room),
        named("running", &running_now(snapshot), room),
    ];
    let shards = if record.shards.is_empty() {
        "shards   none waits or runs".into()
    } else {
        let rows: Vec<_> = in_order(record)
            .into_iter()
            .map(|(id, presence)| {
                let head = presence.head.map_or("-".into(), |head| head.to_string());
                let label = presence.label.to_string();
                [label, id.to_string(), head, presence.running.to_string(), lease(snapshot, presence)]
            })
            .collect();
        format!("\n{}", table(["SHARD", "ID", "HEAD", "RUNNING", "LEASE LEFT"], &rows, room))
    };
    format!("{}\n{shards}", lines.join("\n"))
}

fn running_now(snapshot: &Snapshot) -> String {
    match snapshot.record.max_running {
        Some(_) => format!("{}, {}", snapshot.running(), running(snapshot.record.max_running)),
        None => "not counted, since there is no limit".into(),
    }
}

fn lease(snapshot: &Snapshot, presence: &Presence) -> String {
    if presence.expires_at > snapshot.at { about(presence.expires_at - snapshot.at) } else { "ended".into() }
}
