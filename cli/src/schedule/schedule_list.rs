//! `schedule list`: the next run and the last task of each schedule.

use std::collections::HashMap;

use interval_queue_documents::Schedule;
use interval_queue_tasks::{MAX_PAGE, Order, Selector, State, StoredSchedule, TaskId, TaskQueue};

use super::{schedule_args::List, schedule_words};
use crate::{
    exit::{Failure, print, print_as_it_is, report},
    json_output::json_line,
    table::{room, table},
};

pub(super) async fn list(list: &List) -> Result<(), Failure> {
    let queue = list.target.tasks().await?;
    let all = queue.schedules().await?;
    let states = states(&queue, &all).await?;
    if list.json {
        let line = |schedule: &StoredSchedule| {
            let last = schedule.last.and_then(|id| states.get(&id).copied());
            json_line(&Schedule::of(schedule, list.next.into(), last))
        };
        return print_as_it_is(all.iter().map(line).collect::<String>().as_bytes());
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

/// Only last tasks that are still stored.
async fn states(queue: &TaskQueue, all: &[StoredSchedule]) -> Result<HashMap<TaskId, State>, Failure> {
    let last: Vec<_> = all.iter().filter_map(|schedule| schedule.last).collect();
    let mut states = HashMap::new();
    for ids in last.chunks(MAX_PAGE as usize) {
        let page = queue.page(&Selector::ids(ids.to_vec()), Order::Oldest, MAX_PAGE, false).await?;
        states.extend(page.tasks.iter().map(|stored| (stored.task.id, stored.task.state)));
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
