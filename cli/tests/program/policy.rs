//! The policy for failures: the parts that a task sets itself, and those that it takes from its queue.

use std::fs;

use serde_json::{Value, json};

use crate::{
    place_tests::Backend,
    process::{text, wait_until},
    tasks::add,
};

fn shown(place: &Backend, id: &str) -> Value {
    serde_json::from_str(&place.ok(&["tasks", "show", id, "--json"])).unwrap()
}

/// The ids of tasks that set their attempts, one added in each way there is.
fn with_two_attempts(place: &Backend) -> Vec<String> {
    let mut ids = add(place, &["--max-attempts", "2", "1"]);
    let script = "echo 2 | \"$IQ\" add --max-attempts 2 -";
    let lines = place.shell(script);
    ids.push(text(&lines.finish().stdout).trim().to_owned());
    let flow = place.path("flow.json");
    fs::write(&flow, "{\"a\": {\"payload\": 3, \"max_attempts\": 2}}").unwrap();
    let added: Value =
        serde_json::from_str(&place.ok(&["add", "--flow", flow.to_str().unwrap(), "--json"])).unwrap();
    ids.push(added["tasks"]["a"].as_str().unwrap().to_owned());
    place.ok(&["schedule", "add", "s", "--every", "1s", "--max-attempts", "2", "4"]);
    let _worker = place.spawn(&["work", "--kind", "other", "--", "true"]);
    let made = || place.ok(&["tasks", "list", "--json"]);
    let of_schedule = || made().lines().map(parsed).find(|task| task["schedule"] == "s");
    wait_until("the schedule has made a task", || of_schedule().is_some());
    ids.push(of_schedule().unwrap()["id"].as_str().unwrap().to_owned());
    ids
}

fn parsed(line: &str) -> Value {
    serde_json::from_str(line).unwrap()
}

#[test]
fn a_task_stores_only_the_part_of_the_policy_that_it_sets() {
    let place = Backend::sqlite();
    let ids = with_two_attempts(&place);
    let plain = add(&place, &["5"]);
    let file = place.path("settings.json");
    fs::write(&file, "{\"policy\": {\"max_attempts\": 9, \"backoff_us\": 5000000}}").unwrap();
    place.ok(&["tasks", "set", "--from", file.to_str().unwrap()]);
    for id in &ids {
        let task = shown(&place, id);
        assert_eq!(task["own_policy"], json!({"max_attempts": 2}), "{task:#}");
        let policy = &task["policy"];
        assert_eq!(
            (&policy["max_attempts"], &policy["backoff_us"]),
            (&json!(2), &json!(5_000_000)),
            "{task:#}"
        );
    }
    let task = shown(&place, &plain[0]);
    assert_eq!((&task["own_policy"], &task["policy"]["max_attempts"]), (&Value::Null, &json!(9)));
    let page = place.ok(&["tasks", "show", &ids[0]]);
    let line = "policy      max attempts 2 (set by the task), max retries 1000, backoff 5s, max backoff 1h, \
                no timeout";
    assert!(page.lines().any(|shown| shown == line), "{page}");
}
