//! `tasks failures`: what failed, and running it again.

use std::fs;

use serde_json::{Value, json};

use crate::{
    place_tests::Backend,
    process::{text, wait_until},
};

fn counts(place: &Backend) -> Value {
    let overview: Value = serde_json::from_str(&place.ok(&["tasks", "--json", "--over", "0s"])).unwrap();
    overview["counts"].clone()
}

fn failures(place: &Backend, options: &[&str]) -> Value {
    serde_json::from_str(&place.ok(&[&["tasks", "failures", "--json"], options].concat())).unwrap()
}

/// Adds a task for each number.
fn add(place: &Backend, options: &str, numbers: std::ops::Range<u32>) {
    let lines: String = numbers.map(|number| format!("{number}\n")).collect();
    fs::write(place.path("numbers"), lines).unwrap();
    let added = place.shell(&format!("\"$IQ\" add {options} - < numbers > ids")).finish();
    assert!(added.status.success(), "{added:?}");
}

/// Each look adds up: every task that was added is in one state.
fn add_up(counts: &Value) -> bool {
    let states = [
        "added",
        "waiting",
        "scheduled",
        "blocked",
        "ready",
        "leased",
        "done",
        "failed",
        "cancelled",
        "purged",
    ];
    states.iter().map(|state| counts[state].as_u64().unwrap()).sum::<u64>() == counts["ever_added"]
}

#[test]
fn two_hundred_of_fifty_thousand_are_retried_by_their_error() {
    let place = Backend::sqlite();
    add(&place, "--kind bill", 100_000..149_700);
    add(&place, "--kind risky --priority 5", 200_000..200_300);
    let script = "read n; [ $INTERVAL_QUEUE_TASK_KIND = bill ] && exit
        [ $n -ge 200200 ] && echo \"customer $n: no such one\" >&2 && exit 65
        [ -e repaired ] || { echo \"customer $n: it's down\" >&2; exit 65; }";
    let _workers = [1, 2].map(|_| {
        place.spawn(&["work", "--jobs", "4", "--kind", "risky", "--kind", "bill", "--", "sh", "-c", script])
    });
    let mut last = json!(null);
    let mut look = |what: &str, is_so: &dyn Fn(&Value) -> bool| {
        wait_until(what, || {
            last = counts(&place);
            assert!(add_up(&last) && last["ever_added"] == 50_000, "{last:#}");
            is_so(&last)
        });
    };
    look("they have failed", &|counts| counts["failed"] == 300);
    let found = failures(&place, &[]);
    let said: Vec<_> = found["groups"].as_array().unwrap().iter().map(|group| &group["count"]).collect();
    assert_eq!((said, &found["failed"]), (vec![&json!(200), &json!(100)], &json!(300)), "{found:#}");
    let shown = place.ok(&["tasks", "failures"]);
    assert!(shown.contains("200 failed: ") && shown.contains("100 failed: "), "{shown}");
    let again = shown.lines().find_map(|line| line.strip_prefix("  again: interval-queue ")).unwrap();
    let run = |more: &str| place.shell(&format!("\"$IQ\" {again} {more}")).finish();
    let would = run("--dry-run");
    assert!(text(&would.stderr).contains("dry run: 200 tasks would be retried"), "{would:?}");
    assert_eq!(counts(&place)["failed"], 300, "nothing was done");
    fs::write(place.path("repaired"), "").unwrap();
    let done = run("");
    assert!(done.status.success(), "{done:?}");
    assert_eq!(done.stdout, would.stdout, "what the dry run has shown");
    assert_eq!(text(&done.stdout).lines().count(), 200);
    look("they have run", &|counts| {
        assert_eq!((&counts["failed"], &counts["ever_failed"]), (&json!(100), &json!(300)), "{counts:#}");
        failed_or_done(&place, "risky") == [100, 200]
    });
    assert_eq!(failures(&place, &[])["failed"], 100);
}

/// How many of a kind have failed, and how many are done.
fn failed_or_done(place: &Backend, kind: &str) -> [u64; 2] {
    let overview: Value = serde_json::from_str(&place.ok(&["tasks", "--json", "--over", "0s"])).unwrap();
    let kinds = overview["kinds"].as_array().unwrap();
    let counts = &kinds.iter().find(|one| one["kind"] == kind).unwrap()["counts"];
    ["failed", "done"].map(|state| counts[state].as_u64().unwrap())
}

#[test]
fn a_group_says_what_it_is_and_how_it_is_run_again() {
    let place = Backend::sqlite();
    for (kind, payload) in [("a", "\"disk\""), ("a", "\"disk\""), ("b", "\"disk full\"")] {
        place.ok(&["add", "--kind", kind, "--tag", "t", "--max-attempts", "1", payload]);
    }
    let empty = place.run(&["tasks", "failures"]);
    assert_eq!(empty.status.code(), Some(66));
    assert!(text(&empty.stderr).contains("no failed task"), "{empty:?}");
    place.ok(&[
        "work",
        "--until-empty",
        "--kind",
        "a",
        "--kind",
        "b",
        "--",
        "sh",
        "-c",
        "tr -d '\"' >&2; exit 65",
    ]);
    let shown = place.ok(&["tasks", "failures", "--tag", "t"]);
    for part in [
        "2 failed: ",
        "\n  2 a; ",
        "tasks retry --store=sqlite:",
        " --queue=mail --state failed --tag=t --error=",
        "This retries 3 tasks: other errors contain that text, too",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let only = failures(&place, &["--kind", "b", "--error", "full"]);
    assert_eq!((&only["failed"], &only["groups"][0]["kinds"]), (&json!(1), &json!({"b": 1})), "{only:#}");
    let other = place.run(&["tasks", "failures", "--state", "done"]);
    assert_eq!(other.status.code(), Some(64));
    assert!(text(&other.stderr).contains("--state done"), "{other:?}");
}

#[test]
fn a_failure_that_is_retried_is_told_too() {
    let place = Backend::sqlite();
    place.ok(&["add", "--max-attempts", "1", "1"]);
    place.ok(&["add", "2", "3"]);
    let _worker = place.spawn(&["work", "--", "sh", "-c", "echo \"smtp-$(cat): greylisted\" >&2; exit 1"]);
    let mut found = json!(null);
    wait_until("all have failed once", || {
        let output = place.run(&["tasks", "failures", "--json"]);
        found = serde_json::from_slice(&output.stdout).unwrap_or_default();
        found["failed"] == 1 && found["retrying"] == 2
    });
    let groups = found["groups"].as_array().unwrap();
    assert_eq!(groups.len(), 1, "{found:#}");
    assert_eq!((&groups[0]["count"], &groups[0]["retrying"]), (&json!(1), &json!(2)), "{found:#}");
    assert!(place.ok(&["tasks", "failures"]).starts_with("1 failed, 2 retrying: "));
    let again = place.ok(&["tasks", "failures"]);
    let again =
        again.lines().find_map(|line| line.strip_prefix("  again: interval-queue ")).unwrap().to_owned();
    // The command is about this queue, whatever the environment names.
    let env = "INTERVAL_QUEUE_STORE=sqlite:other.db INTERVAL_QUEUE_NAME=other";
    let output = place.shell(&format!("{env} \"$IQ\" {again} --dry-run")).finish();
    assert!(text(&output.stderr).contains("dry run: 1 task would be retried"), "{output:?}");
}
