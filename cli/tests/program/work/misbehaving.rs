//! Commands that misbehave: whatever one does, its task ends as promised and with a reason, the worker goes on with the
//! next one, and no process is left.

mod leaves;
mod misbehaving_ends;
mod prints;
mod takes;

use std::{env, fs, path::Path};

use serde_json::{Value, json};

use super::{add, task, worker};
use crate::{place_tests::Backend, process::wait_until};

/// The key of a task whose command misbehaves.
const BAD: &str = "bad";
/// What [`misbehave`] has seen, beside how the task ended.
const AS_PROMISED: &str = "so each time; the worker went on with the next task, and no process was left";

/// A script that does so for tasks of that key. Others are done.
fn bad(script: &str) -> String {
    format!("if [ \"$INTERVAL_QUEUE_TASK_KEY\" != {BAD} ]; then echo next; exit; fi\n{script}")
}

/// Runs a task whose command is this script, and then another one. Returns the first.
fn misbehave(options: &[&str], script: &str) -> Value {
    misbehave_with(&Backend::sqlite(), options, "1", script)
}

fn misbehave_with(place: &Backend, options: &[&str], payload: &str, script: &str) -> Value {
    fs::write(place.path("payload"), payload).unwrap();
    let added = format!("\"$IQ\" add --key {BAD} --max-attempts 1 - < payload > id");
    assert!(place.shell(&added).finish().status.success());
    let id = fs::read_to_string(place.path("id")).unwrap().trim().to_owned();
    let next = add(place, &["2"]);
    let mut worker = worker(place, options, &bad(script));
    let has_ended = |id: &str| task(place, id)["ended_us"].is_u64();
    wait_until("both tasks have ended", || has_ended(&id) && has_ended(&next));
    assert_eq!(task(place, &next)["result"], "next");
    assert_eq!(worker.ended(), None, "the worker goes on");
    assert_eq!(left_of(&id), [0; 0], "no process of it is left");
    task(place, &id)
}

/// The processes that have the id of this task in their environment.
fn left_of(id: &str) -> Vec<u32> {
    let mark = format!("INTERVAL_QUEUE_TASK_ID={id}");
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let left = processes.filter_map(|process| {
        let environment = fs::read(process.path().join("environ")).ok()?;
        let is_of_it = environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes());
        is_of_it.then(|| process.file_name().to_str()?.parse().ok()).flatten()
    });
    left.collect()
}

/// Asserts that a task has failed, and returns why.
fn failure(task: &Value) -> &str {
    assert_eq!(task["state"], "failed", "{task:#}");
    task["error"].as_str().unwrap()
}

/// Writes down what a command did and what became of it, where evidence is gathered.
fn tell(fault: &str, injected: usize, promised: &str, happened: &str) {
    let row = json!([{
        "kind": "task-chaos", "where": "interval-queue work", "fault": fault, "injected": injected,
        "promised": promised, "happened": happened,
    }]);
    println!("{row:#}");
    if let Some(directory) = env::var_os("INTERVAL_QUEUE_EVIDENCE") {
        fs::create_dir_all(&directory).unwrap();
        let name = fault.replace(|sign: char| !sign.is_ascii_alphanumeric(), "-");
        fs::write(Path::new(&directory).join(format!("task-chaos-work-{name}.json")), format!("{row:#}\n"))
            .unwrap();
    }
}
