//! `tasks copy` and `tasks move`: tasks from one place to another.

use std::{fs, thread, time::Duration};

use serde_json::Value;

use crate::{
    place_tests::Backend,
    process::{text, wait_until},
};

fn counts(place: &Backend, url: &str) -> Value {
    let overview = place.ok(&["tasks", "--json", "--over", "0s", "--store", url]);
    serde_json::from_str::<Value>(&overview).unwrap()["counts"].clone()
}

fn directory(place: &Backend) -> String {
    format!("dir:{}", place.path("jobs").display())
}

/// Adds so many tasks there, whose payloads are their numbers.
fn add(place: &Backend, url: &str, many: usize) {
    let numbers: String = (0..many).map(|n| format!("{n}\n")).collect();
    let file = place.path("numbers");
    fs::write(&file, numbers).unwrap();
    let mut add = place.command(&["add", "-q", "--store", url, "-"]);
    assert!(add.stdin(fs::File::open(file).unwrap()).status().unwrap().success());
}

/// What its command has written of each run, sorted.
fn runs(place: &Backend) -> Vec<u64> {
    let text = fs::read_to_string(place.path("runs")).unwrap_or_default();
    let mut runs: Vec<u64> = text.lines().map(|line| line.parse().unwrap()).collect();
    runs.sort_unstable();
    runs
}

/// From a directory to PostgreSQL, with workers at both ends, by a program that is killed again and again.
#[test]
fn a_queue_moves_while_workers_run_and_the_program_is_killed() {
    let place = Backend::postgres();
    let (from, to) = (directory(&place), place.url());
    add(&place, &from, 400);
    let script = format!("read n; echo $n >> '{}'; sleep 0.05", place.path("runs").display());
    let mut workers: Vec<_> = [&from, &to]
        .iter()
        .map(|url| place.spawn(&["work", "--jobs", "2", "--store", url, "--", "sh", "-c", &script]))
        .collect();
    wait_until("some have run", || runs(&place).len() > 10);
    let mut killed = 0;
    let moves = ["tasks", "move", "--store", &from, "--to", &to, "--all"];
    for after in [40, 80, 120, 200, 300] {
        let mut mover = place.spawn(&moves);
        thread::sleep(Duration::from_millis(after));
        killed += usize::from(mover.ended().is_none());
        drop(mover);
    }
    let moved = place.run(&moves);
    assert!(moved.status.success(), "{moved:?}");
    assert!(text(&moved.stderr).contains("tasks moved"), "{moved:?}");
    wait_until("all have run", || counts(&place, &to)["ready"] == 0 && counts(&place, &to)["leased"] == 0);
    workers.clear();
    let (here, there) = (counts(&place, &from), counts(&place, &to));
    assert_eq!(runs(&place), (0..400).collect::<Vec<_>>(), "each once; killed {killed}: {here} {there}");
    for live in ["added", "waiting", "scheduled", "blocked", "ready", "leased"] {
        assert_eq!((&here[live], &there[live]), (&0.into(), &0.into()), "{live}");
    }
    assert_eq!(here["cancelled"], there["done"]);
    assert_eq!(here["done"].as_u64().unwrap() + there["done"].as_u64().unwrap(), 400);
}

#[test]
fn a_copy_says_what_is_new_and_what_was_there() {
    let place = Backend::sqlite();
    let to = directory(&place);
    add(&place, &place.url(), 30);
    place.run(&["work", "--until-empty", "--", "sh", "-c", "read n; test $n -gt 9 || exit 65"]);
    let copy = |args: &[&str]| place.run(&[&["tasks", "copy", "--to", &to], args].concat());
    let copied = copy(&["--state", "failed"]);
    assert!(copied.status.success(), "{copied:?}");
    assert_eq!(text(&copied.stderr), "interval-queue: 10 tasks copied\n");
    let copied = copy(&["--json"]);
    let object: Value = serde_json::from_slice(&copied.stdout).unwrap();
    assert_eq!((&object["new"], &object["again"]), (&20.into(), &10.into()));
    assert!(object["to"].as_str().unwrap().starts_with("mail in dir:"), "{object}");
    assert_eq!(counts(&place, &to)["failed"], 10);
    assert_eq!(counts(&place, &to)["done"], 20);
    let back = place.run(&["tasks", "move", "--store", &to, "--to-queue", "again", "--all"]);
    assert!(back.status.success(), "{back:?}");
    assert_eq!(text(&back.stderr), "interval-queue: 0 tasks moved\n");
}

#[test]
fn a_destination_that_cannot_be_changes_nothing() {
    let place = Backend::sqlite();
    add(&place, &place.url(), 3);
    let here = place.url();
    let wrong: [(&[&str], i32, &str); 7] = [
        (&["move", "--to", &here, "--all"], 64, "the destination is the queue \"mail\" itself"),
        (&["copy", "--to", &here], 64, "the destination is the queue \"mail\" itself"),
        (&["move", "--to", "dir:other"], 64, "--all"),
        (&["move", "--all"], 64, "--to"),
        (&["copy", "--to", "mysql://host/db"], 64, "mysql"),
        (&["copy", "--to", "file:pace.json"], 78, "a JSON file keeps no tasks"),
        (&["move", "--to", "dir:other", "--state", "failed"], 64, "copy ended tasks"),
    ];
    for (args, code, says) in wrong {
        let output = place.run(&[&["tasks"], args].concat());
        assert_eq!(output.status.code(), Some(code), "{args:?}: {output:?}");
        assert!(text(&output.stderr).contains(says), "{args:?}: {output:?}");
    }
    let refused = place.run(&["tasks", "move", "--to", "redis://127.0.0.1:1", "--all"]);
    assert!(!refused.status.success(), "{refused:?}");
    assert_eq!(counts(&place, &here)["ready"], 3);
}

#[test]
fn a_rejected_transfer_creates_no_queue() {
    let place = Backend::sqlite();
    place.ok(&["add", "1"]);
    let unknown = "01957b6e-5e1a-7c3e-9a53-0c6e3a1f2b4d";
    for (args, code, says) in [
        (&["move", unknown][..], 66, "there is no task 01957b6e"),
        (&["copy", unknown], 66, "there is no task 01957b6e"),
        (&["move", "--state", "done"], 64, "a move takes tasks that have not ended"),
    ] {
        let output = place.run(&[&["tasks"], args, &["--to-queue", "there"]].concat());
        assert_eq!(output.status.code(), Some(code), "{args:?}: {output:?}");
        assert!(text(&output.stderr).contains(says), "{output:?}");
        let there = place.run(&["tasks", "--queue", "there"]);
        assert_eq!(there.status.code(), Some(66), "{args:?}: {there:?}");
    }
}
