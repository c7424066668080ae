//! `tasks why` and `tasks workers`: what a task waits for, and who works.

use std::fs;

use jsonschema::Validator;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{
    place_tests::Backend,
    process::{Process, text, wait_until},
    tasks_schema::{check, closed},
};

/// A place, and what its output has to look like.
struct Asked {
    place: Backend,
    validator: Validator,
}

impl Asked {
    fn new() -> Self {
        let place = Backend::sqlite();
        let validator = closed(&place);
        Self { place, validator }
    }

    fn json(&self, args: &[&str]) -> Value {
        let value = serde_json::from_str(&self.place.ok(&[&["tasks"], args, &["--json"]].concat())).unwrap();
        check(&self.validator, &value);
        value
    }

    /// Why a task does not run: it has to be this, with these words.
    fn why(&self, id: &str, gate: &str, words: &[&str]) -> Value {
        let why = self.json(&["why", id]);
        assert_eq!(why["gate"], gate, "{why:#}");
        let shown = self.place.ok(&["tasks", "why", id]);
        for word in words {
            assert!(shown.contains(word), "{word}: {shown}");
        }
        why
    }

    fn add(&self, args: &[&str]) -> String {
        self.place.ok(&[&["add"], args].concat()).trim().to_owned()
    }

    fn wait_for(&self, id: &str, state: &str) {
        wait_until(&format!("{id} is {state}"), || self.json(&["show", id])["state"] == state);
    }

    /// A worker of this kind that never ends.
    fn busy(&self, kind: &str, options: &[&str]) -> Process {
        self.place.spawn(
            &[&["work", "--label", "the busy", "--kind", kind], options, &["--", "sleep", "1000"]].concat(),
        )
    }
}

fn ids(tasks: &Value) -> Vec<&str> {
    tasks.as_array().unwrap().iter().map(|task| task["id"].as_str().unwrap()).collect()
}

#[test]
fn a_task_says_what_it_waits_for_behind_whom_and_until_when() {
    let asked = Asked::new();
    let alone = asked.add(&["--kind", "nobodys", "1"]);
    let why = asked.why(&alone, "unserved", &["no worker is there", "interval-queue work --kind nobodys"]);
    assert_eq!((ids(&why["ahead"]), &why["latest_us"]), (vec![], &json!(null)));

    let _worker = asked.busy("k", &[]);
    let keyed: Vec<_> = (0..3).map(|_| asked.add(&["--kind", "k", "--key", "ada", "1"])).collect();
    asked.wait_for(&keyed[0], "leased");
    let runs = asked.why(&keyed[0], "leased", &["it runs for", "the busy", "latest", "it runs again"]);
    assert!(runs["latest_us"].is_u64() && runs["workers"][0]["label"] == "the busy", "{runs:#}");
    asked.wait_for(&keyed[2], "blocked");
    let has = format!("task {} holds its key", keyed[0]);
    let why = asked.why(&keyed[1], "key", &["it is the first of the blocked", &has, "k, leased, for"]);
    assert_eq!((ids(&why["ahead"]), &why["ahead_count"]), (vec![keyed[0].as_str()], &json!(1)));
    let why = asked.why(&keyed[2], "key", &["it is number 2 of the blocked tasks of its key", &has]);
    assert_eq!(ids(&why["ahead"]), [&keyed[1], &keyed[0]]);

    asked.why(&alone, "unserved", &["the live workers serve other kinds", "serves k"]);
    let ready: Vec<_> = (0..2).map(|_| asked.add(&["--kind", "k", "1"])).collect();
    let why = asked.why(
        &ready[1],
        "next",
        &["nothing is in its way", "when the worker that serves its kind has free capacity"],
    );
    assert_eq!(ids(&why["ahead"]), [&ready[0]]);

    let late = asked.add(&["--kind", "k", "--delay", "1h", "--deadline", "2h", "1"]);
    asked.wait_for(&late, "scheduled");
    let why = asked.why(
        &late,
        "time",
        &["its time comes in 59m", "tasks release", "deadline", "it fails if it has not started"],
    );
    assert_eq!(why["latest_us"], why["task"]["not_before_us"]);

    asked.place.ok(&["pause"]);
    asked.why(&ready[0], "paused", &["interval-queue resume"]);
    asked.place.ok(&["resume"]);
    asked.place.ok(&["run", "--every", "1ms", "--", "true"]);
    asked.place.ok(&["hold", "1h"]);
    let why = asked.why(&ready[0], "rate_held", &["the rate is held for another 59m", "latest"]);
    assert!(why["latest_us"].is_u64(), "{why:#}");
    asked.place.ok(&["tasks", "cancel", &ready[0]]);
    asked.why(&ready[0], "cancelled", &["it was cancelled at", "tasks retry"]);
    let missing = asked.place.run(&["tasks", "why", "01957b6e-5e1a-7c3e-9a53-0c6e3a1f2b4d"]);
    assert_eq!(missing.status.code(), Some(66));
    assert!(text(&missing.stderr).contains("there is no task 01957b6e"), "{missing:?}");
}

#[test]
fn a_task_of_a_graph_names_what_it_waits_for() {
    let asked = Asked::new();
    let flow = r#"{"a": {"kind": "bad", "max_attempts": 1}, "b": {"kind": "slow"},
        "c": {"kind": "c", "after": [{"name": "a", "on_failure": "wait"}, "b"]}, "d": {"kind": "d", "after": ["a"]}}"#;
    fs::write(asked.place.path("flow.json"), flow).unwrap();
    let path = asked.place.path("flow.json");
    let added: Value =
        serde_json::from_str(&asked.place.ok(&["add", "--flow", path.to_str().unwrap(), "--json"])).unwrap();
    let id = |name: &str| added["tasks"][name].as_str().unwrap().to_owned();
    asked.why(&id("c"), "no_step", &["no worker is there"]);
    asked.place.ok(&["work", "--until-empty", "--kind", "bad", "--", "false"]);
    let why = asked.why(&id("a"), "failed", &["it failed for good at", "after 1 failure", "exit code 1"]);
    assert_eq!(why["ahead_count"], 0);
    asked.wait_for(&id("d"), "cancelled");
    let why = asked.why(&id("d"), "cancelled", &["bad, failed"]);
    assert_eq!(ids(&why["ahead"]), [id("a")]);
    let retry = format!("tasks retry {}", id("a"));
    let why = asked.why(&id("c"), "upstreams", &["it waits for 2 other tasks", "1 of them failed", &retry]);
    assert_eq!(why["ahead_count"], 2);
    asked.place.ok(&["work", "--until-empty", "--kind", "slow", "--", "true"]);
    asked.why(&id("b"), "done", &["it was done at"]);
    asked.why(&id("c"), "upstreams", &["it waits for another task"]);
}

#[test]
fn workers_are_shown_with_runs_and_last_poll() {
    let asked = Asked::new();
    let id = asked.add(&["--kind", "k", "1"]);
    let none = asked.place.run(&["tasks", "workers"]);
    assert_eq!(none.status.code(), Some(66), "{none:?}");
    let busy = asked.busy("k", &["--lease", "1s"]);
    asked.wait_for(&id, "leased");
    let workers = asked.json(&["workers"]);
    let worker = &workers["workers"][0];
    assert_eq!(
        (ids(&worker["runs"]), &worker["label"]),
        (vec![id.as_str()], &json!("the busy")),
        "{workers:#}"
    );
    assert!(workers["at_us"].as_u64() >= worker["runs"][0]["leased_us"].as_u64(), "{workers:#}");
    let shown = asked.place.ok(&["tasks", "workers"]);
    let run = format!("\n  {id}  k  for ");
    assert!(shown.contains("the busy (") && shown.contains("serves k") && shown.contains(&run), "{shown}");
    assert!(shown.contains("its lease ends in"), "{shown}");
    busy.signal(Signal::KILL);
    wait_until("it is silent", || asked.place.ok(&["tasks", "workers"]).contains("its lease has ended"));
    // Nobody has taken the task from it.
    asked.why(&id, "lost", &["the lease of its worker has ended", "last seen"]);
}
