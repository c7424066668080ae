//! `status`: the state of a queue and the reason why nothing starts, for a person or a program.

use interval_queue::{Micros, Presence, QueueName, Record, ShardId, Snapshot, StartStatus};
use serde_json::{Value, json};

use crate::{
    args::Status,
    change::running,
    duration::about,
    exit::{Failure, print},
    rate::pace,
    table::{named, room, table},
    tasks::{StatusLines, Tasks},
};

pub(crate) async fn run(status: Status) -> Result<(), Failure> {
    let target = &status.target;
    let pace = target.snapshot().await?;
    let tasks = match Tasks::open_if_kept(target).await? {
        Some(tasks) => StatusLines::find(&tasks).await?,
        None => None,
    };
    if pace.is_none() && tasks.is_none() {
        return Err(target.missing());
    }
    if status.json {
        return print(&format!("{:#}", json(&target.queue, pace.as_ref(), tasks.as_ref())));
    }
    let page = match &pace {
        Some(snapshot) => text(&target.queue, snapshot, room()),
        // A queue of stored tasks need not have a rate.
        None => named("queue", target.queue.as_str(), room()),
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

/// The shards in the order of their starts. Shards that only run come last.
fn in_order(record: &Record) -> Vec<(&ShardId, &Presence)> {
    let mut shards: Vec<_> = record.shards.iter().collect();
    shards.sort_by_key(|(_, presence)| (presence.head.is_none(), presence.head));
    shards
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

/// The object that `--json` prints. The README of this crate describes its fields.
pub(crate) fn json(queue: &QueueName, pace: Option<&Snapshot>, tasks: Option<&StatusLines>) -> Value {
    let mut object = match pace {
        Some(snapshot) => of_pace(queue, snapshot),
        None => json!({ "queue": queue.as_str() }),
    };
    if let Some(stored) = tasks {
        let of_tasks = stored.json(pace);
        if pace.is_none() {
            object["standing"] = of_tasks["standing"].clone();
            object["reason"] = of_tasks["reason"].clone();
        }
        object["tasks"] = of_tasks;
    }
    object
}

fn of_pace(queue: &QueueName, snapshot: &Snapshot) -> Value {
    let record = &snapshot.record;
    let standing = snapshot.start_status();
    let shards = in_order(record).into_iter().map(|(id, presence)| {
        json!({
            "id": id.as_str(),
            "label": presence.label.as_str(),
            "head": presence.head.map(|head| head.get()),
            "running": presence.running,
            "lease_left_us": (presence.expires_at - snapshot.at).get(),
        })
    });
    let rates = record.meters.iter().map(|meter| {
        json!({
            "interval_us": meter.interval.get(),
            "burst": meter.burst,
            "full_in_us": (meter.tat - snapshot.at).get(),
        })
    });
    json!({
        "queue": queue.as_str(),
        "interval_us": record.interval().get(),
        "rates": rates.collect::<Vec<_>>(),
        "max_running": record.max_running,
        "running": snapshot.running(),
        "paused": record.paused,
        "held_for_us": (record.held_until - snapshot.at).get(),
        "ticket": record.ticket.get(),
        "current": record.current.get(),
        "outstanding": record.ticket.behind(record.current),
        "free_in_us": (record.meters.next_slot(Micros::ZERO, 1) - snapshot.at).get(),
        "standing": kind(&standing),
        "reason": standing.to_string(),
        "shards": shards.collect::<Vec<_>>(),
        "tasks": null,
    })
}

fn kind(standing: &StartStatus) -> &'static str {
    match standing {
        StartStatus::Paused => "paused",
        StartStatus::Held { .. } => "held",
        StartStatus::Empty => "empty",
        StartStatus::AtMaxRunning { .. } => "at_max_running",
        StartStatus::Next { .. } => "next",
        _ => "other",
    }
}
