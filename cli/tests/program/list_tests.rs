//! `tasks list`: orders, limits, cursors and selectors.

use std::process::Output;

use crate::{place_tests::Backend, process::text};

/// The first column of a list without its heading.
fn ids(list: &str) -> Vec<String> {
    list.lines().skip(1).filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

fn cursor(output: &Output) -> Option<String> {
    text(&output.stderr).split_once("--after ").map(|(_, cursor)| cursor.trim().to_owned())
}

fn refused(place: &Backend, args: &[&str], code: i32, names: &str) {
    let output = place.run(args);
    let stderr = text(&output.stderr);
    assert!(output.status.code() == Some(code) && stderr.contains(names), "{args:?}: {output:?}");
}

#[test]
fn newest_tasks_are_listed_page_by_page() {
    let place = Backend::sqlite();
    let added: Vec<String> = (0..5).map(|n| place.ok(&["add", &n.to_string()]).trim().to_owned()).collect();
    assert_eq!(ids(&place.ok(&["tasks", "list"])), added);
    let newest: Vec<_> = added.iter().rev().cloned().collect();
    assert_eq!(ids(&place.ok(&["tasks", "list", "--newest"])), newest);

    let first = place.run(&["tasks", "list", "--newest", "--limit", "2"]);
    let after = cursor(&first).unwrap();
    assert_eq!(ids(&text(&first.stdout)), newest[..2]);
    let second = place.run(&["tasks", "list", "--newest", "--limit", "3", "--after", &after]);
    assert_eq!((ids(&text(&second.stdout)), cursor(&second).is_none()), (newest[2..].to_vec(), false));
    let last = cursor(&second).unwrap();
    refused(&place, &["tasks", "list", "--after", &last], 66, "no task after the cursor");

    // A cursor outlives its task.
    place.ok(&["tasks", "cancel", &newest[1]]);
    place.ok(&["tasks", "purge", &newest[1]]);
    assert_eq!(ids(&place.ok(&["tasks", "list", "--after", &after])), newest[2..]);

    place.ok(&["tasks", "cancel", &newest[4]]);
    place.ok(&["tasks", "cancel", &newest[2]]);
    let ended = ["tasks", "list", "--newest", "--state", "cancelled"];
    assert_eq!(ids(&place.ok(&ended)), [newest[2].clone(), newest[4].clone()], "the one that ended last");
    refused(&place, &[&ended[..], &["--after", &after]].concat(), 64, &after);
    refused(&place, &["tasks", "list", "--after", "tomorrow"], 64, "\"tomorrow\" is no cursor");
}

#[test]
fn tasks_are_found_by_payload_tags_schedule_and_end_of_id() {
    let place = Backend::sqlite();
    let ada = place.ok(&["add", "--tag", "a", "--tag", "b", r#"{"to": "ada@example.org"}"#]);
    let bob = place.ok(&["add", "--tag", "a", r#"{"to": "bob@example.org"}"#]);
    let (ada, bob) = (ada.trim(), bob.trim());
    let found = |args: &[&str]| ids(&place.ok(&[&["tasks", "list"], args].concat()));
    assert_eq!(found(&["--payload", "ada@"]), [ada]);
    assert_eq!(found(&["--payload", r#"": "bob"#]), [bob], "with the space that was added");
    assert_eq!(found(&["--tag", "a"]), [ada, bob]);
    assert_eq!(found(&["--tag", "a", "--tag", "b"]), [ada]);
    assert_eq!(found(&["--newer-than", "1h"]), [ada, bob]);
    assert_eq!(found(&[&ada[28..]]), [ada]);
    assert!(place.ok(&["tasks", "show", &bob[24..].to_uppercase()]).contains(bob));
    assert_eq!(place.ok(&["tasks", "list", "--count"]), "2\n");
    assert_eq!(place.ok(&["tasks", "list", "--count", "--payload", "bob"]), "1\n");
    assert_eq!(place.ok(&["tasks", "list", "--count", "--tag", "a", "--limit", "1"]), "1\n");
    refused(&place, &["tasks", "list", "--schedule", "night"], 66, "no task matches");
    refused(&place, &["tasks", "show", &ada[29..]], 64, "or its last 8 characters or more");
    refused(&place, &["tasks", "show", "0000-0000000"], 66, "no task whose id ends with \"0000-0000000\"");

    // Ids made from outside can end alike.
    let database = rusqlite::Connection::open(place.path("data/queues.db")).unwrap();
    let alike = format!("00000000{}", &ada[8..]);
    database.execute("UPDATE interval_queue_task SET id = ?1 WHERE id = ?2", [&alike, bob]).unwrap();
    refused(&place, &["tasks", "cancel", &ada[24..]], 64, "is the end of 2 ids");
}
