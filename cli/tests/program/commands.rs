//! The commands that look at a queue and change it.

use serde_json::json;

use crate::{
    place_tests::{Backend, on_each_state},
    process::{text, wait_until},
};

on_each_state!(
    status_tells_how_the_queue_stands,
    changes_say_what_is_in_force,
    queues_are_listed,
    new_settings_are_told
);

fn status_tells_how_the_queue_stands(place: &mut Backend) {
    place.ok(&["run", "--every", "1h", "--", "true"]);
    let mut status = place.status();
    assert!(status["free_in_us"].as_u64().unwrap() > 3_000_000_000, "{status}");
    status["free_in_us"] = json!(0);
    status["rates"][0]["full_in_us"] = json!(0);
    let idle = json!({
        "queue": "mail", "interval_us": 3_600_000_000_u64,
        "rates": [{ "interval_us": 3_600_000_000_u64, "burst": 1, "full_in_us": 0 }], "max_running": null, "running": 0,
        "paused": false, "held_for_us": 0, "ticket": 1, "current": 1, "outstanding": 0, "free_in_us": 0,
        "status": "empty", "reason": "empty: no job waits", "shards": [], "tasks": null,
    });
    assert_eq!(status, idle);
    let _waiting = place.spawn(&["run", "--label", "the second", "--", "true"]);
    wait_until("it waits", || place.waiting() == 1);
    let status = place.status();
    assert_eq!(status["status"], "next");
    assert_eq!(status["outstanding"], 1);
    assert_eq!(status["shards"][0]["label"], "the second");
    assert_eq!(status["shards"][0]["head"], 2);
    assert_eq!(status["shards"][0]["running"], 0);
    assert!(status["shards"][0]["lease_left_us"].as_u64().unwrap() > 0);
    let text = place.ok(&["status"]);
    for part in ["queue    mail", "every 1h (1 per hour)", "waiting for ticket 2", "the second", "LEASE LEFT"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
}

fn changes_say_what_is_in_force(place: &mut Backend) {
    place.ok(&["run", "--every", "250ms", "--", "true"]);
    let is = |args: &[&str], line: &str| {
        let said = place.ok(args);
        assert!(said.starts_with(&format!("mail: {line}")), "{args:?}: {said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    };
    let pace = "one start every 250ms (4 per second), any number running";
    is(&["pause"], &format!("{pace}, paused\n"));
    assert_eq!(place.status()["status"], "paused");
    is(&["resume"], &format!("{pace}, neither paused nor held\n"));
    is(&["hold", "1h"], &format!("{pace}, held for another "));
    assert_eq!(place.status()["status"], "held");
    is(&["set", "--max-running", "7"], "one start every 250ms (4 per second), at most 7 running, held");
    is(&["reset"], "one start every 250ms (4 per second), at most 7 running, neither paused nor held\n");
    is(
        &["set", "--every", "2min", "--max-running", "none"],
        "one start every 2m (30 per hour), any number running",
    );
    let status = place.status();
    assert_eq!(status["interval_us"], 120_000_000);
    assert_eq!(status["max_running"], json!(null));
    assert_eq!(status["held_for_us"], 0);
}

fn queues_are_listed(place: &mut Backend) {
    assert_eq!(place.ok(&["list", "--json"]), "[]\n");
    place.ok(&["run", "--every", "250ms", "--", "true"]);
    place.ok(&["run", "--queue", "post office", "--every", "1s", "--", "true"]);
    place.ok(&["pause", "--queue", "post office"]);
    let list = place.ok(&["list"]);
    let lines: Vec<_> = list.lines().collect();
    assert_eq!(lines.len(), 3, "{list}");
    assert!(lines[1].starts_with("mail ") && lines[1].contains("250ms"), "{list}");
    assert!(lines[2].starts_with("post office ") && lines[2].ends_with("paused"), "{list}");
    let objects: serde_json::Value = serde_json::from_str(&place.ok(&["list", "--json"])).unwrap();
    assert_eq!(objects[0]["queue"], "mail");
    assert_eq!(objects[1]["status"], "paused");
}

fn new_settings_are_told(place: &mut Backend) {
    let said = |args: &[&str]| {
        let output = place.run(args);
        assert!(output.status.success(), "{args:?}: {output:?}");
        text(&output.stderr)
    };
    assert_eq!(said(&["run", "--every", "20ms", "--", "true"]), "");
    assert_eq!(said(&["run", "--every", "20ms", "--", "true"]), "");
    assert_eq!(said(&["run", "--", "true"]), "");
    let kept = said(&["run", "--every", "10ms", "--max-running", "5", "--", "true"]);
    assert!(
        kept.contains("queue \"mail\" keeps its rate, one start every 20ms (50 per second), not one start every 10ms (100 per second): --override changes it for all\n"),
        "{kept}"
    );
    assert!(kept.contains("queue \"mail\" keeps its running limit, none, not 5: --override"), "{kept}");
    let changed = said(&["run", "--override", "--every", "10ms", "--max-running", "5", "--", "true"]);
    assert!(
        changed.contains(
            "rate of queue \"mail\" changed from one start every 20ms (50 per second) to one start every 10ms (100 per second), \
             for all processes\n"
        ),
        "{changed}"
    );
    assert!(
        changed.contains("running limit of queue \"mail\" changed from none to 5, for all processes\n"),
        "{changed}"
    );
    // Who gives no interval joins; who gives one keeps the limit.
    assert_eq!(said(&["run", "--", "true"]), "");
    assert_eq!(said(&["run", "--every", "10ms", "--", "true"]), "");
    assert_eq!(place.status()["max_running"], 5);
}

#[test]
fn looking_changes_nothing() {
    let place = Backend::file();
    place.ok(&["run", "--every", "10ms", "--", "true"]);
    let stored = std::fs::read(place.state_file()).unwrap();
    let files = place.files();
    for args in [&["status"][..], &["status", "--json"], &["list"], &["list", "--json"]] {
        place.ok(args);
        assert_eq!(std::fs::read(place.state_file()).unwrap(), stored, "{args:?}");
        assert_eq!(place.files(), files, "{args:?}");
    }
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let place = Backend::file();
    place.ok(&["run", "--every", "10ms", "--", "true"]);
    let output = place.shell("\"$IQ\" status | true; \"$IQ\" list | head -0; echo done").finish();
    assert_eq!(text(&output.stderr), "");
}
