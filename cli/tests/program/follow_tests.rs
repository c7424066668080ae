//! `tasks follow`: what becomes of tasks, a line each.

use std::{fs, os::unix::process::ExitStatusExt};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{
    place_tests::Backend,
    process::{Process, text, wait_until},
    tasks_schema::{check, closed},
};

/// Follows with these options: the process, and the file that it writes to.
fn follow(place: &Backend, name: &str, options: &str) -> (Process, std::path::PathBuf) {
    let (said, events) = (place.path(&format!("{name}.said")), place.path(&format!("{name}.events")));
    let script = format!("exec \"$IQ\" tasks follow {options} 2>{said:?} >{events:?}");
    let process = place.shell(&script);
    wait_until("it follows", || fs::read_to_string(&said).is_ok_and(|said| said.contains("from now on")));
    (process, events)
}

fn lines(events: &std::path::Path) -> Vec<Value> {
    let text = fs::read_to_string(events).unwrap_or_default();
    let whole = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
    whole.map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn lines_of_logs_are_printed_as_they_are_stored() {
    let place = Backend::sqlite();
    let id = place.ok(&["add", "1"]).trim().to_owned();
    place.ok(&["tasks", "note", &id, "before"]);
    let (with, with_events) = follow(&place, "with", "--log");
    let (without, without_events) = follow(&place, "without", "");
    place.ok(&["tasks", "note", &id, "after"]);
    let other = place.ok(&["add", "--kind", "other", "1"]).trim().to_owned();
    place.ok(&["work", "--until-empty", "--", "sh", "-c", "echo printed >&2"]);
    place.ok(&["tasks", "note", &other, "other"]);
    wait_until("all is printed", || lines(&with_events).len() == 6 && lines(&without_events).len() == 3);
    let printed = lines(&with_events);
    let validator = closed(&place);
    printed.iter().for_each(|line| check(&validator, line));
    let texts: Vec<_> = printed
        .iter()
        .filter(|line| line["text"].is_string())
        .map(|line| (&line["task"], &line["text"]))
        .collect();
    let (id, other) = (json!(id), json!(other));
    assert_eq!(texts, [(&id, &json!("after")), (&id, &json!("printed")), (&other, &json!("other"))]);
    assert!(lines(&without_events).iter().all(|line| line["from"] != line["to"]));
    for process in [with, without] {
        process.signal(Signal::INT);
        assert_eq!(process.finish().status.signal(), Some(2));
    }
}

#[test]
fn each_change_of_a_state_is_a_line() {
    let place = Backend::sqlite();
    let before = place.ok(&["add", "0"]);
    let (all, all_events) = follow(&place, "all", "");
    let (failed, failed_events) =
        follow(&place, "failed", "--kind bad --kind worse --to failed --to cancelled");
    let good = place.ok(&["add", "1"]);
    let bad = place.ok(&["add", "--kind", "bad", "--max-attempts", "1", "2"]);
    place.ok(&["work", "--until-empty", "--", "true"]);
    place.ok(&["work", "--until-empty", "--kind", "bad", "--", "sh", "-c", "echo no room >&2; exit 3"]);
    place.ok(&["tasks", "purge", before.trim()]);
    wait_until("all is told", || lines(&all_events).len() == 9 && lines(&failed_events).len() == 1);
    let told = lines(&all_events);
    let validator = closed(&place);
    told.iter().for_each(|line| check(&validator, line));
    let of = |id: &str| -> Vec<(Value, Value)> {
        let own = told.iter().filter(|line| line["task"] == id.trim());
        own.map(|line| (line["from"].clone(), line["to"].clone())).collect()
    };
    let pair = |from: Value, to: Value| (from, to);
    let run = [pair(json!("ready"), json!("leased")), pair(json!("leased"), json!("done"))];
    assert_eq!(of(&before), [&run[..], &[pair(json!("done"), Value::Null)]].concat());
    assert_eq!(of(&good), [&[pair(Value::Null, json!("ready"))], &run[..]].concat());
    assert_eq!(of(&bad).last(), Some(&pair(json!("leased"), json!("failed"))));
    let failure = lines(&failed_events).remove(0);
    assert_eq!((&failure["task"], &failure["attempt"]), (&json!(bad.trim()), &json!(1)));
    assert!(failure["error"].as_str().unwrap().contains("no room"), "{failure}");
    assert!(failure["worker"].is_string() && failure["at_us"].is_u64(), "{failure}");
    for process in [all, failed] {
        process.signal(Signal::INT);
        assert_eq!(process.finish().status.signal(), Some(2));
    }
}

#[test]
fn follow_selects_tasks_by_all_given_tags() {
    let place = Backend::sqlite();
    let early = place.ok(&["add", "--tag", "red", "0"]);
    let (red, red_events) = follow(&place, "red", "--tag red --tag big");
    let big = place.ok(&["add", "--tag", "red", "--tag", "big", "1"]);
    place.ok(&["add", "--tag", "big", "2"]);
    place.ok(&["add", "3"]);
    place.ok(&["tasks", "tag", "--add", "big", early.trim()]);
    place.ok(&["work", "--until-empty", "--", "true"]);
    place.ok(&["tasks", "purge", "--all"]);
    let of = |lines: &[Value], id: &str| -> Vec<Value> {
        let own = lines.iter().filter(|line| line["task"] == id.trim());
        own.map(|line| line["to"].clone()).collect()
    };
    wait_until("all is printed", || lines(&red_events).len() == 7);
    let printed = lines(&red_events);
    assert_eq!(of(&printed, &early), [json!("leased"), json!("done"), Value::Null]);
    assert_eq!(of(&printed, &big), [json!("ready"), json!("leased"), json!("done"), Value::Null]);
    drop(red);
    let tags: Vec<_> = (0..33).flat_map(|n| ["--tag".to_owned(), n.to_string()]).collect();
    let args: Vec<_> = ["tasks", "follow"].into_iter().chain(tags.iter().map(String::as_str)).collect();
    let many = place.run(&args);
    assert_eq!(many.status.code(), Some(64), "{many:?}");
    assert!(text(&many.stderr).contains("33 tags: a task has at most"), "{many:?}");
}

#[test]
fn follow_rejects_a_missing_queue_and_unknown_states() {
    let place = Backend::sqlite();
    let missing = place.run(&["tasks", "follow"]);
    assert_eq!(missing.status.code(), Some(66), "{missing:?}");
    assert!(text(&missing.stderr).contains("has no tasks in this store"), "{missing:?}");
    place.ok(&["add", "1"]);
    let wrong = place.run(&["tasks", "follow", "--to", "broken"]);
    assert_eq!(wrong.status.code(), Some(64), "{wrong:?}");
    assert!(text(&wrong.stderr).contains("broken"), "{wrong:?}");
}
