//! The commands that delete queues.

use rustix::process::Signal;
use serde_json::Value;

use crate::{
    place_tests::{Backend, on_each_state},
    process::{text, wait_until},
};

on_each_state!(a_queue_is_deleted_once_nobody_uses_it, queues_unused_for_the_given_time_are_pruned);

fn names(place: &Backend) -> Vec<String> {
    let list: Value = serde_json::from_str(&place.ok(&["list", "--json"])).unwrap();
    list.as_array().unwrap().iter().map(|queue| queue["queue"].as_str().unwrap().to_owned()).collect()
}

fn open(place: &Backend, queue: &str, every: &str) {
    place.ok(&["run", "--queue", queue, "--every", every, "--", "true"]);
}

fn a_queue_is_deleted_once_nobody_uses_it(place: &mut Backend) {
    open(place, "mail", "1h");
    open(place, "post office", "1s");
    open(place, "other", "1s");
    let waiting = place.spawn(&["run", "--label", "the one that waits", "--", "true"]);
    wait_until("it waits", || place.waiting() == 1);
    let output = place.run(&["delete", "--yes", "mail", "nowhere", "post office"]);
    assert_eq!(output.status.code(), Some(75), "the first failure counts: {output:?}");
    assert_eq!(text(&output.stdout), "post office: deleted\n");
    let error = text(&output.stderr);
    let lines: Vec<_> = error.lines().collect();
    assert_eq!(lines.len(), 2, "{error}");
    assert!(
        error.contains("mail: the queue is used by a shard: the one that waits (")
            && error.contains("(--force)")
    );
    assert!(error.contains("no queue \"nowhere\" in this store"), "{error}");
    assert_eq!(names(place), ["mail", "other"]);

    assert_eq!(place.ok(&["delete", "--yes", "--force", "mail"]), "mail: deleted\n");
    // The one that waits brings it back when it next asks, within half its lease.
    assert_eq!(place.run(&["delete", "--yes", "mail"]).status.code(), Some(66));
    assert_eq!(names(place), ["other"]);
    drop(waiting);
}

fn queues_unused_for_the_given_time_are_pruned(place: &mut Backend) {
    for queue in ["a", "b", "mail", "paused"] {
        open(place, queue, "1ms");
    }
    place.ok(&["pause", "--queue", "paused"]);
    assert_eq!(place.ok(&["prune", "--idle-for", "1h"]), "", "all of them are young");
    let young = place.run(&["prune", "--idle-for", "1h", "--dry-run"]);
    assert!(young.status.success() && young.stdout.is_empty(), "{young:?}");
    assert!(
        text(&young.stderr).contains("dry run: no queue would be deleted, of 4 in the store"),
        "{young:?}"
    );
    place.ok(&["hold", "1h", "--queue", "b"]);
    let dry = place.ok(&["prune", "--idle-for", "1ms", "--dry-run"]);
    let said: Vec<_> = dry.lines().map(|line| line.split(", not used for ").next().unwrap()).collect();
    assert_eq!(said, ["a: would be deleted", "mail: would be deleted"]);
    assert_eq!(names(place), ["a", "b", "mail", "paused"]);
    let pruned = place.ok(&["prune", "--idle-for", "1ms"]);
    let said: Vec<_> = pruned.lines().map(|line| line.split(", not used for ").next().unwrap()).collect();
    assert_eq!(said, ["a: deleted", "mail: deleted"], "{pruned}");
    assert_eq!(names(place), ["b", "paused"]);
    place.ok(&["reset", "--queue", "b"]);
    place.ok(&["resume", "--queue", "paused"]);
    wait_until("what a reset reserves has passed", || {
        place.ok(&["prune", "--idle-for", "1ms"]);
        names(place).is_empty()
    });
}

#[test]
fn no_queue_is_deleted_that_was_not_named() {
    let place = Backend::file();
    open(&place, "mail", "1s");
    // The environment names a queue, and no command deletes it for that.
    for args in [&["delete"][..], &["delete", "--force"], &["prune"], &["prune", "--idle-for", "0s"]] {
        assert_eq!(place.run(args).status.code(), Some(64), "{args:?}");
    }
    assert_eq!(names(&place), ["mail"]);
}

#[test]
fn a_record_that_cannot_be_read_is_told_and_left() {
    let place = Backend::file();
    for queue in ["a", "b", "c"] {
        open(&place, queue, "1ms");
    }
    let stored = std::fs::read_to_string(place.state_file()).unwrap();
    let (before, after) = stored.split_once("\"b\": {").unwrap();
    std::fs::write(place.state_file(), format!("{before}\"b\": {{ \"colour\": 1,{after}")).unwrap();
    let output = place.run(&["prune", "--idle-for", "1ms"]);
    assert_eq!(output.status.code(), Some(65), "{output:?}");
    assert!(text(&output.stderr).contains("queue b: the record of queue \"b\""), "{output:?}");
    assert_eq!(text(&output.stdout).lines().count(), 2, "the others went: {output:?}");
    assert_eq!(
        place.run(&["delete", "--yes", "--force", "b"]).status.code(),
        Some(65),
        "nor is it deleted by name"
    );
    assert!(std::fs::read_to_string(place.state_file()).unwrap().contains("colour"));
}

#[test]
fn a_queue_is_deleted_with_its_tasks() {
    for place in [Backend::directory(), Backend::sqlite()] {
        with_its_tasks(&place);
    }
}

#[test]
#[ignore = "needs redis-server: scripts/test runs it"]
fn a_queue_is_deleted_with_its_tasks_on_redis() {
    with_its_tasks(&Backend::redis());
}

#[test]
#[ignore = "needs postgresql: scripts/test runs it"]
fn a_queue_is_deleted_with_its_tasks_on_postgres() {
    with_its_tasks(&Backend::postgres());
}

/// Ended and waiting tasks, a schedule, pauses and settings.
fn with_its_tasks(place: &Backend) {
    let id = place.ok(&["add", "1"]);
    place.ok(&["work", "--until-empty", "--", "true"]);
    place.ok(&["add", "--key", "k", "2", "3"]);
    place.ok(&["add", "--kind", "later", "--delay", "1h", "4"]);
    place.ok(&["schedule", "add", "nightly", "--every", "1h", "5"]);
    place.ok(&["tasks", "set", "--key-limit", "7"]);
    for paused in [&["--key", "k"], &["--kind", "later"]] {
        place.ok(&[&["pause"][..], paused].concat());
    }
    let asked = place.run(&["delete", "mail"]);
    assert_eq!(asked.status.code(), Some(64), "{asked:?}");
    let error = text(&asked.stderr);
    assert!(error.contains("its tasks, 2 added, 1 scheduled, 1 done, 1 schedule, the settings"), "{error}");
    assert_eq!(place.ok(&["delete", "--yes", "mail"]), "mail: deleted\n");
    assert!(!place.ok(&["list"]).contains("mail"));
    let gone = place.run(&["delete", "--yes", "mail"]);
    assert_eq!(gone.status.code(), Some(66), "{gone:?}");
    assert_eq!(place.run(&["tasks", "list"]).status.code(), Some(66));
    assert_eq!(place.ok(&["schedule", "list", "--json"]), "");
    let settings: serde_json::Value = serde_json::from_str(&place.ok(&["tasks", "set", "--json"])).unwrap();
    assert_eq!(settings["key_limit"], 1);

    // It can be used again, and the id of a deleted task is none that runs again.
    place.ok(&["add", "--key", "k", "6"]);
    place.ok(&["work", "--until-empty", "--", "true"]);
    assert!(place.ok(&["list"]).contains("1 done"));
    assert!(place.ok(&["tasks", "show", id.trim()]).contains("purged"));
}

#[test]
fn a_queue_whose_tasks_are_served_is_not_deleted() {
    let place = Backend::sqlite();
    open(&place, "mail", "1ms");
    place.ok(&["add", "1"]);
    let worker = place.shell("exec $IQ work --kind other -- true");
    wait_until("it lives", || place.status()["tasks"]["workers"] == 1);
    let refused = place.run(&["delete", "--yes", "--force", "mail"]);
    assert_eq!(refused.status.code(), Some(75), "{refused:?}");
    let error = text(&refused.stderr);
    assert!(
        error.contains("a worker serves its tasks: stop it first; nothing of the queue was deleted"),
        "{error}"
    );
    assert_eq!(place.status()["tasks"]["left"], 1);
    worker.signal(Signal::TERM);
    worker.finish();
    assert_eq!(place.ok(&["delete", "--yes", "mail"]), "mail: deleted\n");
    assert!(!place.ok(&["list"]).contains("mail"));
}
