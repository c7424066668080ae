//! How `work` ends, and how it ends CMD.

use std::os::unix::process::ExitStatusExt;

use rustix::process::Signal;
use serde_json::{Value, json};

use super::{add, lines, task, worker, written_id};
use crate::{
    place_tests::Backend,
    process::{is_alive, text, wait_until},
};

const RUN: &str = "echo $$ >> ids; while ! [ -e stop ]; do sleep 0.05; done; echo 1";

#[test]
fn after_one_signal_what_runs_ends_and_nothing_more_begins() {
    for signal in [Signal::TERM, Signal::INT] {
        let place = Backend::sqlite();
        let (first, second) = (add(&place, &["1"]), add(&place, &["2"]));
        let stopped = worker(&place, &["--grace", "1h"], RUN);
        written_id(&place, "ids");
        stopped.signal(signal);
        std::fs::write(place.path("stop"), "").unwrap();
        let output = stopped.finish();
        assert_eq!(output.status.signal(), Some(signal.as_raw()), "{output:?}");
        assert!(text(&output.stderr).contains("a second signal ends them now"), "{output:?}");
        assert_eq!(task(&place, &first)["result"], 1);
        let second = task(&place, &second);
        assert_eq!((&second["result"], &second["failures"]), (&json!(null), &json!(0)), "{second:#}");
        assert_eq!(lines(&place, "ids").len(), 1);
    }
}

#[test]
fn a_run_longer_than_the_grace_is_ended_and_released() {
    let place = Backend::sqlite();
    let id = add(&place, &["1"]);
    let stopped = worker(&place, &["--grace", "100ms"], RUN);
    let command = written_id(&place, "ids");
    stopped.signal(Signal::TERM);
    assert_eq!(stopped.finish().status.signal(), Some(15));
    assert!(!is_alive(command));
    let task = task(&place, &id);
    assert_eq!((&task["state"], &task["failures"]), (&json!("ready"), &json!(0)), "{task:#}");
}

#[test]
fn a_second_signal_ends_it_at_once_also_what_does_not_listen() {
    let place = Backend::sqlite();
    let id = add(&place, &["1"]);
    let script = "trap '' TERM; echo $$ >> ids; while :; do sleep 0.05; done";
    let stopped = worker(&place, &["--grace", "1h"], script);
    let command = written_id(&place, "ids");
    stopped.signal(Signal::TERM);
    stopped.signal(Signal::INT);
    let ended = stopped.finish().status;
    assert!([Some(2), Some(15)].contains(&ended.signal()), "{ended:?}");
    assert!(!is_alive(command));
    let task = task(&place, &id);
    assert_eq!((&task["state"], &task["failures"]), (&json!("ready"), &json!(0)), "{task:#}");
}

#[test]
fn a_signal_to_a_whole_service_fails_no_task() {
    let place = Backend::sqlite();
    let id = add(&place, &["1"]);
    let stopped = worker(&place, &["--grace", "1h"], RUN);
    let command = written_id(&place, "ids");
    stopped.signal(Signal::TERM);
    // It is told before CMD gets the signal, as it may be in a service, too.
    std::thread::sleep(std::time::Duration::from_millis(300));
    rustix::process::kill_process(crate::process::pid(command), Signal::TERM).unwrap();
    assert_eq!(stopped.finish().status.signal(), Some(15));
    let task = task(&place, &id);
    assert_eq!((&task["state"], &task["failures"]), (&json!("ready"), &json!(0)), "{task:#}");
}

#[test]
fn a_task_that_is_cancelled_ends_its_command() {
    let place = Backend::sqlite();
    let id = add(&place, &["1"]);
    let mut worker = worker(&place, &["--lease", "2s"], RUN);
    let command = written_id(&place, "ids");
    place.ok(&["tasks", "cancel", &id]);
    wait_until("the command has ended", || !is_alive(command));
    wait_until("it is cancelled", || task(&place, &id)["state"] == "cancelled");
    assert_eq!(worker.ended(), None);
}

#[test]
fn a_cancelled_task_is_cancelled_though_its_command_succeeds() {
    let place = Backend::sqlite();
    std::fs::write(place.path("flow"), r#"{"first": {"payload": 1}, "below": {"after": "first"}}"#).unwrap();
    let flow: Value = serde_json::from_str(&place.ok(&["add", "--json", "--flow", "flow"])).unwrap();
    let [first, below] = ["first", "below"].map(|name| flow["tasks"][name].as_str().unwrap().to_owned());
    let second = add(&place, &["--delay", "1h", "2"]);
    let script = "trap 'exit 0' TERM; echo $$ > ids; while :; do sleep 0.05; done";
    let mut worker = worker(&place, &["--lease", "2s"], script);
    written_id(&place, "ids");
    let output = place.run(&["tasks", "cancel", &first, &second]);
    let said = text(&output.stderr);
    assert!(
        said.contains("1 task cancelled; 1 task asked to stop: it is cancelled when its run ends"),
        "{said}"
    );
    wait_until("it is cancelled", || task(&place, &first)["state"] == "cancelled");
    let error = task(&place, &first)["error"].clone();
    assert!(error.as_str().unwrap().contains("finished after it was asked to stop"), "{error}");
    wait_until("so is what waits for it", || task(&place, &below)["state"] == "cancelled");
    assert_eq!(worker.ended(), None);
}

#[test]
fn a_deadline_ends_a_command() {
    let place = Backend::sqlite();
    let id = add(&place, &["--deadline", "3s", "1"]);
    let _worker = worker(&place, &["--lease", "2s"], RUN);
    let command = written_id(&place, "ids");
    wait_until("the command has ended", || !is_alive(command));
    wait_until("it has ended", || task(&place, &id)["ended_us"].is_u64());
}

#[test]
fn a_command_that_takes_too_long_has_failed() {
    let place = Backend::sqlite();
    let id = add(&place, &["--max-attempts", "1", "1"]);
    let script = "trap 'echo ending >&2; exit 0' TERM; echo $$ > ids; while :; do sleep 0.05; done";
    let output = worker(&place, &["--until-empty", "--timeout", "500ms"], script).finish();
    assert!(output.status.success(), "{output:?}");
    assert!(!is_alive(written_id(&place, "ids")));
    let task = task(&place, &id);
    let error = task["error"].as_str().unwrap();
    assert!(
        task["state"] == "failed" && error.starts_with("timed out") && error.ends_with("ending"),
        "{task:#}"
    );
}

#[test]
fn a_state_that_keeps_no_tasks_is_told() {
    let place = Backend::file();
    for args in [&["work", "--", "true"][..], &["add", "1"], &["tasks"]] {
        let output = place.run(args);
        assert_eq!(output.status.code(), Some(78), "{args:?}: {output:?}");
        assert!(text(&output.stderr).contains("sqlite:PATH"), "{output:?}");
        assert!(place.files().is_empty());
    }
}

#[test]
fn a_worker_ends_after_so_many_tasks_or_so_long() {
    let place = Backend::sqlite();
    let ids: Vec<_> = (0..5).map(|_| add(&place, &["1"])).collect();
    let done = || ids.iter().filter(|id| task(&place, id)["state"] == "done").count();
    let output = worker(&place, &["--max-tasks", "2", "--jobs", "9"], "sleep 1").finish();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    assert_eq!(done(), 2, "their runs have ended by themselves");
    let output = worker(&place, &["--for", "1s"], "sleep 2").finish();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    assert_eq!(done(), 3, "what ran then has ended by itself");
    for args in [["--max-tasks", "0"], ["--for", "0s"]] {
        assert_eq!(worker(&place, &args, "true").finish().status.code(), Some(64), "{args:?}");
    }
}
