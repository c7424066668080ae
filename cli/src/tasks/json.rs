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
    let mut say = |name: &str, value: Value| object.insert(name.to_owned(), value);
    say("id", json!(task.id));
    say("state", json!(task.state.as_str()));
    say("kind", json!(task.kind));
    say("priority", json!(task.priority));
    say("key", json!(task.key));
    say("ordered", json!(task.ordered));
    say("unique", json!(task.unique.as_ref().map(|unique| &unique.name)));
    say("weight", json!(task.weight));
    say("tags", json!(task.tags));
    say("added_us", json!(task.added.get()));
    say("not_before_us", json!(micros(Some(task.not_before).filter(|at| *at > task.added))));
    say("deadline_us", json!(micros(task.deadline)));
    say("leased_us", json!(micros(task.leased)));
    say("ended_us", json!(micros(task.ended)));
    say("own_policy", json!(Some(&task.policy).filter(|own| !own.is_empty()).map(dump)));
    say("failures", json!(task.failures));
    say("retries", json!(task.retries));
    say("token", json!(task.leased.map(|_| task.token.to_string())));
    say("worker", json!(task.worker));
    say("stop", json!(task.stop.map(interval_queue::task_contract::Stop::as_str)));
    let progress = task.progress.as_ref();
    say("progress", json!(progress.map(|at| json!({ "done": at.done, "total": at.total, "text": at.text }))));
    say("schedule", json!(task.schedule.as_ref().map(|nominal| &nominal.schedule)));
    say("error", json!(task.error));
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
