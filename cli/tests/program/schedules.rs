//! `schedule`: tasks that are made again and again, from outside.

use std::{
    fs,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{
    place_tests::Backend,
    process::{text, wait_until},
};

fn list(place: &Backend, options: &[&str]) -> Vec<Value> {
    let lines = place.ok(&[&["schedule", "list", "--json"], options].concat());
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn lines(text: &str) -> Vec<&str> {
    text.lines().collect()
}

#[test]
fn a_schedule_is_stored_and_told() {
    let place = Backend::sqlite();
    let next = place.ok(&["schedule", "add", "nightly", "--cron", "30 2 * * *", "--zone", "Europe/Berlin"]);
    assert_eq!(
        next.lines().filter(|line| line.contains("T02:30:00+0") || line.contains("T03:00:00+02:00")).count(),
        3
    );
    let options = [
        "--overlap",
        "skip",
        "--missed",
        "5",
        "--kind",
        "k",
        "--max-attempts",
        "2",
        "--next",
        "2",
        "{\"n\": 1}",
    ];
    let next = place
        .ok(&[&["schedule", "add", "poll", "--every", "1h", "--offset", "10min"][..], &options].concat());
    assert!(lines(&next).len() == 2 && lines(&next)[0].ends_with(":10:00Z"), "{next}");
    let paused = place.run(&["schedule", "add", "sweep", "--after-end", "1h", "--paused"]);
    assert!(paused.status.success() && paused.stdout.is_empty(), "{paused:?}");
    assert!(text(&paused.stderr).contains("sweep is paused: `interval-queue schedule resume`"), "{paused:?}");
    let all = list(&place, &["--next", "3"]);
    let names: Vec<_> = all.iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["nightly", "poll", "sweep"]);
    assert_eq!(all[0]["rule"], json!({"cron": {"line": "30 2 * * *", "zone": "Europe/Berlin"}}));
    assert_eq!(
        (&all[0]["missed"], &all[0]["overlap"], &all[0]["last"]),
        (&json!("last"), &json!("allow"), &Value::Null)
    );
    assert_eq!(all[1]["rule"], json!({"every": {"every_us": 3_600_000_000_u64, "offset_us": 600_000_000}}));
    let poll = ["missed", "overlap", "kind", "payload", "paused"].map(|field| all[1][field].clone());
    assert_eq!(poll, [json!({"up_to": 5}), json!("skip"), json!("k"), json!({"n": 1}), json!(false)]);
    assert_eq!(all[1]["next_us"].as_array().unwrap().len(), 3);
    assert_eq!((&all[2]["next_us"], &all[2]["paused"]), (&json!([]), &json!(true)));
    let table = place.ok(&["schedule", "list"]);
    for row in [
        "SCHEDULE",
        "nightly   30 2 * * * Europe/Berlin  20",
        "poll      every 1h + 10m",
        "sweep     1h after the end",
    ] {
        assert!(table.lines().any(|line| line.starts_with(row)), "{table}");
    }
}

#[test]
fn any_worker_adds_the_tasks_with_their_instants() {
    let place = Backend::sqlite();
    place.ok(&["schedule", "add", "tick", "--every", "1s", "--kind", "k", "7"]);
    let script = "echo \"$INTERVAL_QUEUE_TASK_SCHEDULED $(cat)\" >> told";
    let told = || fs::read_to_string(place.path("told")).unwrap_or_default();
    // One of them serves nothing of it.
    let _others = place.spawn(&["work", "--kind", "other", "--", "true"]);
    let works = place.shell(&format!("exec \"$IQ\" work --kind k -- sh -c '{script}'"));
    wait_until("three have come", || told().lines().count() >= 3);
    works.signal(rustix::process::Signal::TERM);
    works.finish();
    let told = told();
    let mut instants = Vec::new();
    for line in told.lines() {
        let (at, payload) = line.split_once(' ').unwrap();
        assert_eq!(payload, "7");
        instants.push(at.parse::<u64>().unwrap());
    }
    assert!(instants.is_sorted_by(|a, b| a < b), "{told}");
    let tick = &list(&place, &[])[0];
    let last: Value =
        serde_json::from_str(&place.ok(&["tasks", "show", tick["last"]["id"].as_str().unwrap(), "--json"]))
            .unwrap();
    assert_eq!((&last["schedule"], &last["kind"]), (&json!("tick"), &json!("k")));
    assert!(instants.last().unwrap() * 1_000_000 <= last["added_us"].as_u64().unwrap(), "{told}");
    // One that was added by hand stands for no instant.
    place.ok(&["add", "--kind", "hand", "1"]);
    place.ok(&[
        "work",
        "--until-empty",
        "--kind",
        "hand",
        "--",
        "sh",
        "-c",
        "test -z \"$INTERVAL_QUEUE_TASK_SCHEDULED\"",
    ]);
    assert_eq!(
        place.ok(&["tasks", "list", "--kind", "hand", "--state", "done", "--json"]).lines().count(),
        1
    );
}

#[test]
fn a_schedule_is_paused_run_resumed_changed_and_removed() {
    let place = Backend::sqlite();
    place.ok(&["schedule", "add", "s", "--every", "1h", "--kind", "k", "\"hey\""]);
    assert_eq!(place.ok(&["schedule", "pause", "s"]), "");
    let state = || list(&place, &[])[0]["paused"].clone();
    assert_eq!(state(), true);
    assert!(place.ok(&["schedule", "list"]).contains("paused"));
    let id = place.ok(&["schedule", "run", "s"]);
    place.ok(&["work", "--until-empty", "--kind", "k", "--", "cat"]);
    assert_eq!(place.ok(&["tasks", "wait", id.trim()]), "\"hey\"\n");
    // To say it again, or otherwise, ends no pause.
    place.ok(&["schedule", "add", "s", "--every", "2h", "--kind", "k", "\"hey\""]);
    assert_eq!(state(), true);
    place.ok(&["schedule", "resume", "s"]);
    assert_eq!(state(), false);
    assert_eq!(list(&place, &[])[0]["rule"]["every"]["every_us"], json!(7_200_000_000_u64));
    place.ok(&["schedule", "remove", "s"]);
    let empty = place.run(&["schedule", "list"]);
    assert!(empty.status.success() && text(&empty.stderr).contains("has no schedules"), "{empty:?}");
    for verb in ["pause", "resume", "run", "remove"] {
        let output = place.run(&["schedule", verb, "s"]);
        assert_eq!(output.status.code(), Some(66), "{output:?}");
        assert!(text(&output.stderr).contains("there is no schedule \"s\" in this queue"), "{output:?}");
    }
}

#[test]
fn a_dry_run_stores_nothing() {
    let place = Backend::sqlite();
    let dry = ["--dry-run", "--next", "2", "--cron", "0 12 * * *", "--zone", "America/New_York"];
    let next = place.ok(&[&["schedule", "add", "noon"], &dry[..]].concat());
    assert!(lines(&next).len() == 2 && next.lines().all(|line| line.contains("T12:00:00-0")), "{next}");
    assert!(!place.path("data/queues.db").exists());
    for args in [&["list"][..], &["pause", "noon"], &["run", "noon"], &["remove", "noon"]] {
        let output = place.run(&[&["schedule"], args].concat());
        assert_eq!(output.status.code(), Some(66), "{output:?}");
        assert!(text(&output.stderr).contains("has no tasks in this store"), "{output:?}");
        assert!(!place.path("data/queues.db").exists(), "{args:?}");
    }
}

#[test]
fn invalid_schedules_are_reported_with_a_valid_one() {
    let place = Backend::sqlite();
    let cron = |line| ["--cron", line, "--zone", "UTC"];
    for (args, says) in [
        (&[][..], "--every"),
        (&["--every", "1h", "--after-end", "1h"], "cannot be used with"),
        (&["--every", "1h", "--zone", "UTC"], "cannot be used with"),
        (&["--cron", "0 3 * * *"], "--zone"),
        (&["--cron", "@daily"], "@daily is a name of other dialects: write 0 0 * * *"),
        (&["--after-end", "1h", "--overlap", "skip"], "cannot be used with"),
        (&["--every", "5m", "--missed", "0"], "give none, last, or a number from 1 to 1000"),
        (&["--every", "5min", "--overlap", "queue"], "give allow, skip or keep"),
        (&["--every", "1ms"], "interval 1ms: give 1 s to ten years"),
        (&["--every", "1h", "hello"], "hello is no JSON"),
        (&cron("0 0 3 * * *"), "cron line \"0 0 3 * * *\": it has 6 fields: give five, minute, hour"),
        (&cron("0 3 L * *"), "L is of another dialect"),
        (&cron("@daily"), "@daily is a name of other dialects: write 0 0 * * *"),
        (&cron("0 25 * * *"), "range 0..=23; found 25"),
        (
            &cron("0 0 30 2 *"),
            "cron line \"0 0 30 2 *\" does not come within four years: there is no such day",
        ),
        (
            &["--cron", "0 3 * * *", "--zone", "Europe/Atlantis"],
            "there is no time zone \"Europe/Atlantis\": name one",
        ),
    ] {
        for dry in [&[][..], &["--dry-run"]] {
            let output = place.run(&[&["schedule", "add", "s"], dry, args].concat());
            assert_eq!(output.status.code(), Some(64), "{args:?}: {output:?}");
            assert!(text(&output.stderr).contains(says), "{args:?}: {output:?}");
            assert!(output.stdout.is_empty() && !place.path("data/queues.db").exists(), "{args:?}");
        }
    }
    let long = "x".repeat(201);
    let output = place.run(&["schedule", "add", &long, "--every", "1h"]);
    assert!(output.status.code() == Some(64) && text(&output.stderr).contains("200"), "{output:?}");
}

#[test]
fn a_schedule_that_a_worker_cannot_read_is_reported_once() {
    let place = Backend::sqlite();
    place.ok(&["schedule", "add", "newer", "--every", "1s", "1"]);
    let database = rusqlite::Connection::open(place.path("data/queues.db")).unwrap();
    let newer = "UPDATE interval_queue_task_schedule SET definition = '{\"version\": 3}'";
    assert_eq!(database.execute(newer, []).unwrap(), 1);
    drop(database);
    let mut command = place.command(&["work", "--", "true"]);
    let worker = command.stderr(fs::File::create(place.path("stderr")).unwrap()).spawn().unwrap();
    let worker = crate::process::Process::adopt(worker);
    let printed = || fs::read_to_string(place.path("stderr")).unwrap();
    let id = place.ok(&["add", "1"]);
    wait_until("it is reported", || printed().contains("schedule \"newer\": "));
    wait_until("others run", || place.ok(&["tasks", "show", id.trim(), "--json"]).contains("\"done\""));
    worker.signal(rustix::process::Signal::TERM);
    worker.finish();
    let of_schedule = printed().lines().filter(|line| line.contains("newer version")).count();
    assert_eq!(of_schedule, 1, "{}", printed());
}

#[test]
#[allow(clippy::disallowed_methods, reason = "instants of true time have to pass")]
fn until_empty_runs_schedules_that_were_due_at_the_start() {
    let place = Backend::sqlite();
    place.ok(&["schedule", "add", "s", "--every", "1s", "--missed", "100", "--kind", "k", "1"]);
    let began = Instant::now();
    wait_until("several instants have passed", || began.elapsed() > Duration::from_secs(4));
    let work = place.run(&["work", "--until-empty", "--kind", "k", "--", "true"]);
    assert!(work.status.success(), "{work:?}");
    let overview: Value = serde_json::from_str(&place.ok(&["tasks", "--json"])).unwrap();
    assert!(overview["counts"]["done"].as_u64() >= Some(4), "{overview:#}");
    // One that has come since is another one's.
    assert!(overview["counts"]["ready"].as_u64().unwrap_or(0) <= 1, "{overview:#}");
}

#[test]
fn a_schedule_adds_a_flow_at_each_instant() {
    let place = Backend::sqlite();
    let file = place.path("flow.json");
    let add = |flow: Value, options: &[&str]| {
        fs::write(&file, flow.to_string()).unwrap();
        let schedule = ["schedule", "add", "report", "--flow", file.to_str().unwrap()];
        place.run(&[&schedule[..], options].concat())
    };
    let flow = json!({"mail": {"payload": 2, "after": "export"}, "export": {"payload": 1}});
    let hourly = ["--every", "1h", "--overlap", "skip"];
    let stored = add(flow, &hourly);
    assert!(stored.status.success(), "{stored:?}");
    let last = place.ok(&["schedule", "run", "report"]);
    let work = place.run(&["work", "--until-empty", "--", "cat"]);
    assert!(work.status.success(), "{work:?}");
    let tasks = place.ok(&["tasks", "list", "--flow", last.trim(), "--json"]);
    let mut done: Vec<_> = tasks.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()).collect();
    done.sort_by_key(|task| task["ended_us"].as_u64());
    let states: Vec<_> = done.iter().map(|task| (&task["tags"][1], &task["state"])).collect();
    let is_done = &json!("done");
    assert_eq!(states, [(&json!("name:export"), is_done), (&json!("name:mail"), is_done)], "{tasks}");
    let two_ends = add(json!({"a": {}, "b": {}}), &hourly);
    let says = "task \"a\" of a schedule's flow and task \"b\" of a schedule's flow are both last";
    assert!(two_ends.status.code() == Some(64) && text(&two_ends.stderr).contains(says), "{two_ends:?}");
    for options in [&["--kind", "k"][..], &["1"]] {
        let both = add(json!({"a": {}}), &[&hourly[..], options].concat());
        assert!(both.status.code() == Some(64) && text(&both.stderr).contains("--flow"), "{both:?}");
    }
    let none = place.run(&["schedule", "add", "x", "--every", "1h", "--flow", "no-such-file"]);
    assert_eq!(none.status.code(), Some(66), "{none:?}");
}
