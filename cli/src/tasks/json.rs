//! Tasks as JSON, see `tasks.schema.json`.

use interval_queue::{
    Micros,
    task_contract::{Attempt, Edge, Policy, Stored, Task, TaskId, Worker},
};
use serde_json::{Map, Value, json};

use super::{
    settings::dump,
    task_words::{end, why},
};
use crate::object::Object;

fn micros(at: Option<Micros>) -> Option<u64> {
    at.map(Micros::get)
}

fn attempt(attempt: &Attempt) -> Value {
    json!({
        "token": attempt.token.to_string(),
        "worker": attempt.worker,
        "leased_us": micros(attempt.leased),
        "ended_us": attempt.ended.get(),
        "end": end(attempt.end),
        "error": attempt.error,
    })
}

fn edge(other: TaskId, edge: &Edge) -> Value {
    json!({
        "id": other,
        "name": edge.name,
        "on_failure": edge.on_failure.as_str(),
        "state": edge.state.as_str(),
    })
}

/// A task in a list, without its payload.
pub(super) fn row(task: &Task) -> Value {
    Value::Object(fields(task))
}

/// A task in a list, with its payload and result if they were read.
pub(super) fn task(stored: &Stored) -> Object {
    let mut object = Object::from(fields(&stored.task));
    if let Some(payload) = &stored.payload {
        object.text("payload", payload);
    }
    if let Some(result) = &stored.result {
        object.text("result", result);
    }
    object
}

/// A task with all its fields, in a queue with this policy.
pub(super) fn whole(stored: &Stored, queue: &Policy) -> Object {
    let mut object = task(stored);
    object.value("policy", dump(&stored.task.policy.over(queue)));
    object.value("attempts", stored.task.history.iter().map(attempt).collect());
    object.value("upstreams", stored.upstreams.iter().map(|one| edge(one.up, one)).collect());
    object.value("downstreams", stored.downstreams.iter().map(|one| edge(one.down, one)).collect());
    object.value("why", json!(stored.why.as_ref().map(|one| why(&stored.task, one))));
    object
}

fn fields(task: &Task) -> Map<String, Value> {
    let mut object: Map<String, Value> = Map::new();
    let mut set = |name: &str, value: Value| object.insert(name.to_owned(), value);
    set("id", json!(task.id));
    set("state", json!(task.state.as_str()));
    set("kind", json!(task.kind));
    set("priority", json!(task.priority));
    set("key", json!(task.key));
    set("ordered", json!(task.ordered));
    set("unique", json!(task.unique.as_ref().map(|unique| &unique.name)));
    set("weight", json!(task.weight));
    set("tags", json!(task.tags));
    set("added_us", json!(task.added.get()));
    set("not_before_us", json!(micros(Some(task.not_before).filter(|at| *at > task.added))));
    set("deadline_us", json!(micros(task.deadline)));
    set("leased_us", json!(micros(task.leased)));
    set("ended_us", json!(micros(task.ended)));
    set("own_policy", json!(Some(&task.policy).filter(|own| !own.is_empty()).map(dump)));
    set("failures", json!(task.failures));
    set("retries", json!(task.retries));
    set("token", json!(task.leased.map(|_| task.token.to_string())));
    set("worker", json!(task.worker));
    set("stop", json!(task.stop.map(interval_queue::task_contract::Stop::as_str)));
    let progress = task.progress.as_ref();
    set("progress", json!(progress.map(|at| json!({ "done": at.done, "total": at.total, "text": at.text }))));
    set("schedule", json!(task.schedule.as_ref().map(|nominal| &nominal.schedule)));
    set("error", json!(task.error));
    object
}

pub(super) fn worker(worker: &Worker) -> Value {
    let presence = &worker.presence;
    json!({
        "id": presence.worker,
        "label": presence.label.as_str(),
        "kinds": presence.kinds,
        "since_us": presence.since.get(),
        "seen_us": presence.seen.get(),
        "lease_left_us": micros(worker.alive_for),
        "at_least": presence.at_least,
        "room": presence.room,
        "holds": worker.holds.iter().map(|(id, _)| id).collect::<Vec<_>>(),
    })
}
