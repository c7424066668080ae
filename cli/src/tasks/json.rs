//! Tasks for programs, as `tasks.schema.json` describes them.

use interval_queue::{
    Micros,
    task_contract::{Attempt, Edge, Stored, Task, TaskId, Worker},
};
use serde_json::{Map, Value, json};

use super::words::{end, why};

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

/// A task as in lists, without its payload.
pub(super) fn row(row: &Task) -> Value {
    let stored = Stored {
        task: row.clone(),
        payload: None,
        result: None,
        upstreams: vec![],
        downstreams: vec![],
        why: None,
    };
    task(&stored, false)
}

/// A task; `whole` with all that was asked for by its id.
pub(super) fn task(stored: &Stored, whole: bool) -> Value {
    let task = &stored.task;
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
    say("max_attempts", json!(task.policy.map(|policy| policy.max_attempts)));
    say("failures", json!(task.failures));
    say("retries", json!(task.retries));
    say("token", json!(task.leased.map(|_| task.token.to_string())));
    say("worker", json!(task.worker));
    say("stop", json!(task.stop.map(interval_queue::task_contract::Stop::as_str)));
    let progress = task.progress.as_ref();
    say("progress", json!(progress.map(|at| json!({ "done": at.done, "total": at.total, "text": at.text }))));
    say("schedule", json!(task.schedule.as_ref().map(|nominal| &nominal.schedule)));
    say("error", json!(task.error));
    // What is stored was checked when it came in.
    let value = |json: &interval_queue::task_contract::Json| {
        serde_json::from_str(json.as_str()).unwrap_or(Value::Null)
    };
    if let Some(payload) = &stored.payload {
        say("payload", value(payload));
    }
    if let Some(result) = &stored.result {
        say("result", value(result));
    }
    if whole {
        say("attempts", task.history.iter().map(attempt).collect());
        say("upstreams", stored.upstreams.iter().map(|one| edge(one.up, one)).collect());
        say("downstreams", stored.downstreams.iter().map(|one| edge(one.down, one)).collect());
        say("why", json!(stored.why.as_ref().map(why)));
    }
    Value::Object(object)
}

/// A worker.
pub(super) fn worker(worker: &Worker, is_alive: bool) -> Value {
    let presence = &worker.presence;
    json!({
        "id": presence.worker,
        "label": presence.label.as_str(),
        "kinds": presence.kinds,
        "since_us": presence.since.get(),
        "seen_us": presence.seen.get(),
        "lease_left_us": micros(worker.alive_for.filter(|_| is_alive)),
        "at_least": presence.at_least,
        "room": presence.room,
        "holds": worker.holds.iter().map(|(id, _)| id).collect::<Vec<_>>(),
    })
}
