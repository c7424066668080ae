//! T4: ready tasks are leased by `due`, ties in the order of adding. A retry keeps its `due`; no
//! task starves.

use std::time::Duration;

use interval_queue_task_contract::{
    Change, Command, Fire, Fired, Imported, Json, NewSchedule, NewTask, Outcome, Overlap, Read, Reply,
    SettingsChange, TaskId, Verb, When,
};

use crate::{
    Handles,
    client::{Client, attempts, done, id_of_name, key, kind, opened, seconds, task, usual},
};

/// Enough that a random order is never right.
const MANY: usize = 12;

/// `MANY` copies of a task with ids in random order.
fn like(new: &NewTask) -> Vec<NewTask> {
    (0..MANY).map(|_| NewTask { id: id_of_name(), ..new.clone() }).collect()
}

/// Adds copies by two commands, possibly at one instant.
async fn add(queue: &Client, new: &NewTask) -> Vec<TaskId> {
    let mut ids = queue.add(like(new)).await;
    ids.extend(queue.add(like(new)).await);
    ids
}

pub async fn equals_run_in_the_order_of_adding(handles: Handles) {
    let (one, other) = usual(handles).await;
    let ids = add(&one, &task()).await;
    let mut worker = other.worker();
    let mut taken = Vec::new();
    for want in [1, 3, MANY as u32, MANY as u32] {
        taken.extend(worker.take(want).await);
    }
    assert_eq!(taken, ids);
}

pub async fn ordered_tasks_of_names_run_in_the_order_of_adding(handles: Handles) {
    let (one, other) = usual(handles).await;
    let ids = add(&one, &NewTask { key: Some(key("k")), ordered: true, ..task() }).await;
    let mut worker = other.worker();
    for id in ids {
        assert_eq!(worker.run().await, id);
    }
}

/// A task of the key may hold a permit already, and a key may have several permits.
pub async fn equals_of_a_key_run_in_the_order_of_adding(handles: Handles) {
    let settings = SettingsChange { key_limit: Some(3), ..SettingsChange::default() };
    let (one, other) = opened(handles, settings).await;
    let ids = add(&one, &NewTask { key: Some(key("k")), ..task() }).await;
    let mut worker = other.worker();
    let mut taken = Vec::new();
    while taken.len() < ids.len() {
        let runs = worker.lease(3).await;
        assert_eq!(runs.len(), 3);
        for run in runs {
            taken.push(run.task.id);
            worker.end((run.task.id, run.task.token), done()).await;
        }
    }
    assert_eq!(taken, ids);
}

pub async fn retried_tasks_run_in_the_order_of_adding(handles: Handles) {
    let (one, other) = usual(handles).await;
    let ids = add(&one, &NewTask { policy: attempts(1), ..task() }).await;
    let mut worker = other.worker();
    for _ in &ids {
        let run = worker.one().await;
        worker.end(run, Outcome::Error("it broke".into())).await;
    }
    one.touch(Verb::Retry, ids.clone()).await;
    worker.tidy().await;
    assert_eq!(worker.take(99).await, ids);
}

pub async fn imported_tasks_run_in_the_order_of_adding(handles: Handles) {
    let (there, _) = usual(handles.clone()).await;
    let (here, other) = usual(handles).await;
    let ids = add(&there, &task()).await;
    let mut moved = Vec::new();
    for &id in ids.iter().rev() {
        let stored = there.stored(id).await;
        let payload = stored.payload.unwrap_or_default();
        moved.push(Imported { task: stored.task, payload, result: None, log: Vec::new(), edges: Vec::new() });
    }
    here.apply(Command::Import(moved.into())).await.unwrap();
    let mut worker = other.worker();
    worker.tidy().await;
    assert_eq!(worker.take(99).await, ids);
}

pub async fn missed_instants_run_oldest_first(handles: Handles) {
    let (one, other) = usual(handles).await;
    let at = one.overview().await.at;
    let (name, next) = (key("s"), Some(at));
    let definition = Json::default();
    let new = NewSchedule { name, definition, next, paused: false, overlap: Overlap::Allow };
    one.change(Change::Schedule(new)).await;
    let Reply::Schedules(mut schedules) = one.read(Read::Schedules).await else { panic!("no schedules") };
    let schedule = schedules.remove(0);
    let instants = (0..MANY as u64).map(|n| at - seconds(MANY as u64 - n));
    let made: Vec<_> = instants
        .map(|at| {
            (at, NewTask::new(TaskId::of_schedule(schedule.incarnation, &schedule.name, at), Json::default()))
        })
        .collect();
    let ids: Vec<_> = made.iter().map(|(_, new)| new.id).collect();
    let next = Some(at + seconds(3_600));
    let (name, revision) = (schedule.name, schedule.revision);
    let fire = Fire { schedule: name, revision, from: at, made, next };
    assert_eq!(one.apply(Command::Fire(fire)).await.unwrap(), Reply::Fired(Fired::Made));
    assert_eq!(other.worker().take(99).await, ids);
}

/// Tasks that become ready at one instant.
pub async fn equals_of_one_time_run_in_the_order_of_adding(handles: Handles) {
    let (one, other) = usual(handles).await;
    let at = When::At(one.overview().await.at + seconds(100));
    let mut ids = add(&one, &NewTask { not_before: at, ..task() }).await;
    one.pass(Duration::from_secs(1)).await;
    ids.extend(add(&one, &NewTask { not_before: at, key: Some(key("k")), ordered: true, ..task() }).await);
    one.pass(Duration::from_secs(100)).await;
    let mut worker = other.worker();
    worker.tidy().await;
    for id in ids {
        assert_eq!(worker.run().await, id);
    }
}

pub async fn a_day_of_waiting_outweighs_one_priority(handles: Handles) {
    let queue = usual(handles).await.0;
    let first = queue.add_one(task()).await;
    queue.pass(Duration::from_secs(86_400 - 1)).await;
    let urgent = queue.add_one(NewTask { priority: 1, kind: kind("urgent"), ..task() }).await;
    queue.pass(Duration::from_secs(2)).await;
    let late = queue.add_one(NewTask { priority: 1, ..task() }).await;
    let mut worker = queue.worker_of(&["default", "urgent"]);
    assert_eq!(worker.take(9).await, [urgent, first, late]);
}

pub async fn a_retry_keeps_its_place(handles: Handles) {
    let queue = usual(handles).await.0;
    let first = queue.add_one(task()).await;
    let mut worker = queue.worker();
    let run = worker.one().await;
    queue.pass(Duration::from_secs(1)).await;
    let second = queue.add_one(task()).await;
    worker.end(run, Outcome::Error("again".into())).await;
    queue.pass(Duration::from_secs(10)).await;
    worker.tidy().await;
    let next = worker.one().await;
    assert_eq!(next.0, first);
    worker.end(next, done()).await;
    assert_eq!(worker.run().await, second);
}
