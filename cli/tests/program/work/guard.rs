//! The guard: CMD ends when its worker is gone or silent, and never runs beside its successor.

use std::os::unix::process::ExitStatusExt;

use rustix::process::{Signal, kill_process};
use serde_json::json;

use super::{add, lines, task, work, worker, written_id};
use crate::{
    place_tests::Backend,
    process::{is_alive, pid, text, wait_until},
};

/// Appends a line when it begins and when it ends, and says if an earlier run goes on. It goes on until there is a
/// file.
const RUN: &str = "
    for other in $(sed -n 's/begin //p' log 2> /dev/null); do
        kill -0 $other 2> /dev/null && echo \"beside $other\" >> log
    done
    echo \"begin $$\" >> log; echo $$ >> ids
    while ! [ -e stop ]; do sleep 0.05; done
    echo \"end $$\" >> log";

#[test]
fn a_killed_worker_leaves_no_command_and_its_task_runs_again() {
    let place = Backend::sqlite();
    let id = add(&place, &["1"]);
    let options = ["--lease", "2s"];
    let killed = worker(&place, &options, RUN);
    let first = written_id(&place, "ids");
    let second_worker = worker(&place, &options, RUN);
    killed.signal(Signal::KILL);
    assert_eq!(killed.finish().status.signal(), Some(9));
    wait_until("the command has ended", || !is_alive(first));
    assert_eq!(lines(&place, "log"), [format!("begin {first}")], "nobody else runs it yet");
    wait_until("it runs again", || lines(&place, "ids").len() == 2);
    let second = written_id(&place, "ids");
    std::fs::write(place.path("stop"), "").unwrap();
    wait_until("it is done", || task(&place, &id)["state"] == "done");
    let expected = [format!("begin {first}"), format!("begin {second}"), format!("end {second}")];
    assert_eq!(lines(&place, "log"), expected);
    let task = task(&place, &id);
    assert_eq!((&task["failures"], &task["attempts"][0]["end"]), (&json!(1), &json!("died")), "{task:#}");
    drop(second_worker);
}

#[test]
fn a_command_that_does_not_listen_is_killed_with_its_worker() {
    let place = Backend::sqlite();
    add(&place, &["1"]);
    let script = "trap '' TERM INT HUP; echo $$ > ids; while :; do sleep 0.05; done";
    let killed = worker(&place, &[], script);
    let id = written_id(&place, "ids");
    killed.signal(Signal::KILL);
    wait_until("the command has ended", || !is_alive(id));
}

#[test]
fn processes_of_a_command_end_with_its_worker() {
    let place = Backend::sqlite();
    add(&place, &["1"]);
    let killed = worker(&place, &[], "sleep 1000 & echo $! > ids; wait");
    let id = written_id(&place, "ids");
    killed.signal(Signal::KILL);
    wait_until("the child of the command has ended", || !is_alive(id));
}

#[test]
fn a_worker_stopped_for_its_lease_loses_its_command() {
    let place = Backend::sqlite();
    let id = add(&place, &["1"]);
    let options = ["--lease", "2s"];
    let mut still = worker(&place, &options, RUN);
    let first = written_id(&place, "ids");
    still.signal(Signal::STOP);
    wait_until("the guard has ended the command", || !is_alive(first));
    let state = task(&place, &id)["state"].clone();
    assert_eq!(state, "leased", "the store has not given it to anybody");
    // Another one runs it while the first stands still.
    let other = worker(&place, &options, RUN);
    wait_until("it runs again", || lines(&place, "ids").len() == 2);
    let second = written_id(&place, "ids");
    still.signal(Signal::CONT);
    std::fs::write(place.path("stop"), "").unwrap();
    wait_until("it is done", || task(&place, &id)["state"] == "done");
    let expected = [format!("begin {first}"), format!("begin {second}"), format!("end {second}")];
    assert_eq!(lines(&place, "log"), expected);
    assert_eq!(still.ended(), None, "it goes on");
    drop(other);
}

// Takes seven seconds: a lease is longer than a busy host stalls, and the run than two of them.
#[test]
fn a_long_run_outlives_many_leases() {
    let place = Backend::sqlite();
    let id = add(&place, &["--max-attempts", "1", "1"]);
    let output = worker(&place, &["--until-empty", "--lease", "3s"], "sleep 7; echo 7").finish();
    assert!(output.status.success(), "{output:?}");
    let task = task(&place, &id);
    assert_eq!((&task["state"], &task["result"]), (&json!("done"), &json!(7)), "{task:#}");
}

#[test]
fn a_guard_that_is_killed_takes_its_command_along() {
    let place = Backend::sqlite();
    let id = add(&place, &["--max-attempts", "1", "1"]);
    let worker = worker(&place, &["--until-empty"], "echo $PPID > guard; echo $$ > ids; sleep 1000");
    let command = written_id(&place, "ids");
    kill_process(pid(written_id(&place, "guard")), Signal::KILL).unwrap();
    assert!(worker.finish().status.success());
    assert!(!is_alive(command));
    let task = task(&place, &id);
    assert_eq!(task["state"], "failed");
    assert!(task["error"].as_str().unwrap().starts_with("its guard ended"), "{task:#}");
}

#[test]
fn processes_in_the_group_of_a_command_end_with_it() {
    let place = Backend::sqlite();
    let id = add(&place, &["1"]);
    let output = work(&place, "(trap '' TERM; sleep 1000) & echo $! > ids; echo 1");
    assert!(output.status.success(), "{output:?}");
    assert!(!is_alive(written_id(&place, "ids")));
    assert_eq!(task(&place, &id)["result"], 1);
}

#[test]
fn signals_to_the_guard_do_not_end_it() {
    let place = Backend::sqlite();
    let id = add(&place, &["1"]);
    let worker = worker(
        &place,
        &["--until-empty"],
        "kill -TERM $PPID; kill -INT $PPID; kill -HUP $PPID; sleep 0.2; echo 1",
    );
    assert!(worker.finish().status.success());
    let task = task(&place, &id);
    assert_eq!((&task["result"], &task["failures"]), (&json!(1), &json!(0)), "{task:#}");
}

#[test]
fn a_guard_is_no_command_for_people() {
    let place = Backend::file();
    let output = place.run(&["guard", "true"]);
    assert_eq!(output.status.code(), Some(64));
    assert!(text(&output.stderr).contains("not for direct use"), "{output:?}");
    assert!(!place.ok(&["--help"]).contains("guard"));
}
