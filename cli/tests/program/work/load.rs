//! What a worker has room for, and what it takes while the system is busy.

use std::fs;

use serde_json::Value;

use crate::{
    place_tests::Backend,
    process::{text, wait_until},
};

fn why(place: &Backend, id: &str) -> Value {
    serde_json::from_str(&place.ok(&["tasks", "why", id, "--json"])).unwrap()
}

#[test]
fn a_task_waits_for_room_and_says_so() {
    let place = Backend::sqlite();
    let ids = place.ok(&["add", "--weight", "3", "1", "2"]);
    let ids: Vec<_> = ids.lines().collect();
    let _worker = place.spawn(&["work", "--jobs", "4", "--capacity", "4", "--", "sleep", "1000"]);
    wait_until("the second one has no room", || why(&place, ids[1])["gate"] == "capacity");
    assert_eq!(why(&place, ids[0])["gate"], "leased");
    let workers: Value = serde_json::from_str(&place.ok(&["tasks", "workers", "--json"])).unwrap();
    assert_eq!(workers["workers"][0]["free_capacity"], 1);
    assert!(place.ok(&["tasks", "workers"]).contains("has capacity left for weight 1"));
}

#[cfg(target_os = "linux")]
#[test]
fn under_load_a_task_waits_and_says_so() {
    let place = Backend::sqlite();
    let usual = place.ok(&["add", "1"]);
    let urgent = place.ok(&["add", "--priority", "7", "2"]);
    let _busy = place.shell("while :; do :; done");
    wait_until("there is some load", || !fs::read_to_string("/proc/loadavg").unwrap().starts_with("0.00"));
    let _worker = place.spawn(&["work", "--at-load", "0=7", "--", "true"]);
    wait_until("the urgent one is done", || why(&place, urgent.trim())["gate"] == "done");
    wait_until("the other one waits", || why(&place, usual.trim())["gate"] == "load");
    assert!(place.ok(&["tasks", "workers"]).contains("takes only priority 7 and higher"));
}

#[test]
fn levels_that_make_no_sense_are_refused() {
    let place = Backend::sqlite();
    for (args, says) in [
        (&["--at-load", "0.8"][..], "write 0.8=5 or 0.95=none"),
        (&["--at-load", "much=5"], "write 0.8=5 or 0.95=none"),
        (&["--at-load", "nan=5"], "give 0 or more"),
        (&["--at-load", "0.8=500"], "priority 500"),
        (&["--at-load", "0.8=none", "--at-load", "0.9=1"], "turn them round"),
        (&["--capacity", "0"], "capacity"),
    ] {
        let output = place.run(&[&["work"], args, &["--", "true"]].concat());
        assert_eq!(output.status.code(), Some(64), "{args:?}: {output:?}");
        assert!(text(&output.stderr).contains(says), "{args:?}: {output:?}");
    }
}
