//! `schedule list`: the next run and the last task of each schedule.

use std::{
    collections::HashMap,
    time::{SystemTime, UNIX_EPOCH},
};

use interval_queue::task_contract::{MAX_PAGE, Selector, State, TaskId};
use interval_queue_tasks::{StoredSchedule, TaskQueue};
use serde_json::{Value, json};

use super::{existing, schedule_args::List, schedule_words};
use crate::{
    exit::{Failure, print, print_as_it_is, report},
    object::Object,
    table::{room, table},
};

pub(super) async fn list(list: &List) -> Result<(), Failure> {
    let queue = existing(&list.target).await?;
    let all = queue.schedules().await?;
    let states = states(&queue, &all).await?;
    if list.json {
        let object = |schedule| format!("{}\n", object(schedule, &states, list.next.into()));
        return print_as_it_is(all.iter().map(object).collect::<String>().as_bytes());
    }
    if all.is_empty() {
        report(&format!(
            "queue {:?} has no schedules: `interval-queue schedule add` adds one",
            queue.name().as_str()
        ));
        return Ok(());
    }
    let rows: Vec<_> = all.iter().map(|schedule| row(schedule, &states)).collect();
    print(&table(["SCHEDULE", "WHEN", "NEXT", "LAST TASK", "STATE"], &rows, room()))
}

/// The states of the last tasks that are still stored.
async fn states(queue: &TaskQueue, all: &[StoredSchedule]) -> Result<HashMap<TaskId, State>, Failure> {
    let last: Vec<_> = all.iter().filter_map(|schedule| schedule.last).collect();
    let mut states = HashMap::new();
    for ids in last.chunks(MAX_PAGE as usize) {
        let mut after = None;
        loop {
            let page = queue.page(&Selector::ids(ids.to_vec()), after, MAX_PAGE, false).await?;
            states.extend(page.tasks.iter().map(|stored| (stored.task.id, stored.task.state)));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
    }
    Ok(states)
}

fn row(schedule: &StoredSchedule, states: &HashMap<TaskId, State>) -> [String; 5] {
    let rule = schedule.rule();
    let zone = rule.and_then(schedule_words::zone);
    let next = match schedule.next {
        _ if schedule.paused => "paused".into(),
        Some(at) => schedule_words::time(at, zone),
        None => "never".into(),
    };
    [
        schedule.name.to_string(),
        rule.map_or_else(|| schedule.unread.clone().unwrap_or_default(), schedule_words::rule),
        next,
        schedule.last.map_or("-".into(), |id| id.to_string()),
        schedule.last.map_or("-".into(), |id| states.get(&id).map_or("deleted".into(), State::to_string)),
    ]
}

fn micros(at: SystemTime) -> u64 {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

/// A schedule as a JSON object, see `tasks.schema.json`.
fn object(schedule: &StoredSchedule, states: &HashMap<TaskId, State>, most: usize) -> Object {
    let last =
        schedule.last.map(|id| json!({ "id": id, "state": states.get(&id).map(|state| state.as_str()) }));
    let mut object = Object::default();
    object.value("name", json!(schedule.name));
    object.value("rule", json!(schedule.rule()));
    object.value("missed", json!(schedule.missed()));
    object.value("overlap", json!(schedule.overlap));
    object.value("paused", json!(schedule.paused));
    object.value("next_us", schedule.next_runs(most).into_iter().map(micros).collect());
    object.value("last", json!(last));
    object.value("kind", json!(schedule.kind()));
    match schedule.payload() {
        Some(payload) => object.text("payload", payload),
        None => object.value("payload", Value::Null),
    }
    object.value("unread", json!(schedule.unread));
    object
}
