//! A host that lacks something for a while: one line, and the task has the cause.

use std::fs;

use super::task;
use crate::{
    place_tests::Backend,
    process::{Process, wait_until},
};

/// Adds two tasks, of which the second one gets the result of the first.
fn chained(place: &Backend) -> String {
    let flow = r#"[{"name": "first", "payload": 1}, {"name": "then", "payload": 2, "after": ["first"]}]"#;
    fs::write(place.path("flow"), flow).unwrap();
    let ids = place.ok(&["add", "--flow", "flow"]);
    let then = ids.lines().find(|line| line.ends_with(" then")).unwrap();
    then.split_once(' ').unwrap().0.to_owned()
}

/// Waits until the task was given back for this reason, which counts as no failure.
fn was_given_back(place: &Backend, id: &str, why: &str) {
    let seen = || {
        let task = task(place, id);
        let attempts = task["attempts"].as_array().unwrap();
        let is_seen = attempts.iter().any(|attempt| {
            attempt["end"] == "released" && attempt["error"].as_str().is_some_and(|error| error.contains(why))
        });
        (task["failures"] == 0 && is_seen, task)
    };
    wait_until("it is given back", || seen().0);
    assert!(seen().1["error"].as_str().unwrap().contains(why), "{:#}", seen().1);
}

fn printed(place: &Backend) -> String {
    fs::read_to_string(place.path("stderr")).unwrap()
}

#[test]
fn a_directory_for_inputs_that_is_missing() {
    let place = Backend::sqlite();
    let id = chained(&place);
    let missing = place.path("missing");
    let mut command = place.command(&["work", "--", "cat"]);
    command.env("TMPDIR", &missing).stderr(fs::File::create(place.path("stderr")).unwrap());
    let _worker = Process::adopt(command.spawn().unwrap());
    let why = format!("cannot write the inputs of a task into {}: No such file", missing.display());
    was_given_back(&place, &id, &why);
    assert_eq!(printed(&place).lines().count(), 1, "{}", printed(&place));
    assert!(printed(&place).starts_with("interval-queue: this host cannot run tasks: cannot write"));
    fs::create_dir(&missing).unwrap();
    wait_until("it runs", || task(&place, &id)["state"] == "done");
    wait_until("the end is printed", || printed(&place).contains("this host runs tasks again\n"));
    assert_eq!(printed(&place).lines().count(), 2, "{}", printed(&place));
}

#[test]
fn a_limit_of_open_files() {
    let place = Backend::sqlite();
    let payloads: Vec<_> = (1..=16).map(|n| n.to_string()).collect();
    let add = ["add", "--max-attempts", "1"].into_iter().chain(payloads.iter().map(String::as_str));
    let ids = place.ok(&add.collect::<Vec<_>>());
    // The worker and its database take about 25, and each run three.
    let script = "ulimit -n 40; exec \"$IQ\" work --jobs 16 -- sh -c 'sleep 1; echo 1' 2> stderr";
    let _worker = place.shell(script);
    wait_until("the lack is printed", || {
        place.path("stderr").exists() && printed(&place).contains("oo many open files")
    });
    wait_until("the rest is done in the end", || ids.lines().any(|id| task(&place, id)["state"] == "done"));
    assert!(ids.lines().all(|id| task(&place, id)["failures"] == 0));
    let is_told = |line: &str| line.contains("oo many open files") || line.contains("runs tasks again");
    assert!(printed(&place).lines().all(is_told), "{}", printed(&place));
}
