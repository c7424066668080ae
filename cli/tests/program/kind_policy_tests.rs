//! `tasks set --kind`: the policy of the tasks of a kind.

use std::fs;

use serde_json::{Value, json};

use crate::{place_tests::Backend, process::text, tasks::add};

fn kinds(place: &Backend) -> Value {
    let settings: Value = serde_json::from_str(&place.ok(&["tasks", "set", "--json"])).unwrap();
    settings["kinds"].clone()
}

#[test]
fn options_with_a_kind_change_that_kind_alone() {
    let place = Backend::sqlite();
    let set = |args: &str| {
        let args: Vec<_> = ["tasks", "set"].into_iter().chain(args.split(' ')).collect();
        place.ok(&args)
    };
    let printed = set("--kind mail --max-attempts 3 --timeout 1min");
    assert!(printed.ends_with("\nkind mail: max attempts 3, timeout 1m\n"), "{printed}");
    assert!(printed.contains("at most 5 attempts"), "{printed}");
    set("--kind mail --backoff 5s");
    set("--kind digest --max-backoff 2min");
    let mail = json!({"max_attempts": 3, "backoff_us": 5_000_000, "timeout_us": 60_000_000});
    assert_eq!(kinds(&place), json!({"mail": mail, "digest": {"max_backoff_us": 120_000_000}}));
    set("--kind mail --inherit --max-attempts 7");
    set("--kind digest --inherit");
    assert_eq!(kinds(&place), json!({"mail": {"max_attempts": 7}}));
    let printed = set("--kind mail --inherit");
    assert_eq!((printed.lines().count(), kinds(&place)), (1, json!({})), "{printed}");
}

#[test]
fn a_page_names_the_source_of_each_part() {
    let place = Backend::sqlite();
    place.ok(&["tasks", "set", "--kind", "mail", "--max-attempts", "3", "--backoff", "1min"]);
    let id = &add(&place, &["--kind", "mail", "--max-attempts", "2", "1"])[0];
    let plain = &add(&place, &["--kind", "mail", "1"])[0];
    let shown =
        |id: &str| -> Value { serde_json::from_str(&place.ok(&["tasks", "show", id, "--json"])).unwrap() };
    let task = shown(id);
    assert_eq!(task["kind_policy"], json!({"max_attempts": 3, "backoff_us": 60_000_000}));
    assert_eq!(
        (&task["policy"]["max_attempts"], &task["policy"]["backoff_us"]),
        (&json!(2), &json!(60_000_000))
    );
    assert_eq!(shown(plain)["policy"]["max_attempts"], json!(3));
    let page = place.ok(&["tasks", "show", id]);
    let line = "policy      max attempts 2 (set by the task), max retries 1000, backoff 1m (set by its kind), \
                max backoff 1h, no timeout";
    assert!(page.lines().any(|shown| shown == line), "{page}");
    let other = &add(&place, &["1"])[0];
    assert_eq!(shown(other)["kind_policy"], Value::Null);
}

#[test]
fn a_run_fails_by_the_policy_of_its_kind() {
    let place = Backend::sqlite();
    place.ok(&["tasks", "set", "--kind", "mail", "--max-attempts", "1"]);
    for kind in ["mail", "other"] {
        add(&place, &["--kind", kind, "1"]);
    }
    place.run(&["work", "--kind", "mail", "--kind", "other", "--max-tasks", "2", "--", "false"]);
    let state = |kind: &str| {
        let task = place.ok(&["tasks", "list", "--kind", kind, "--json"]);
        serde_json::from_str::<Value>(&task).unwrap()["state"].clone()
    };
    assert_eq!((state("mail"), state("other")), (json!("failed"), json!("scheduled")));
}

#[test]
fn a_file_changes_the_kinds_that_it_names() {
    let place = Backend::sqlite();
    place.ok(&["tasks", "set", "--kind", "a", "--max-attempts", "3", "--timeout", "1s"]);
    place.ok(&["tasks", "set", "--kind", "b", "--max-attempts", "4"]);
    let file = place.path("settings.json");
    let from = |text: &str| {
        fs::write(&file, text).unwrap();
        place.run(&["tasks", "set", "--from", file.to_str().unwrap()])
    };
    let all = place.ok(&["tasks", "set", "--json"]);
    assert!(from(&all).status.success());
    let output =
        from("{\"kinds\": {\"a\": {\"timeout_us\": null}, \"b\": null, \"c\": {\"max_retries\": 0}}}");
    assert!(output.status.success(), "{output:?}");
    let stored = json!({"a": {"max_attempts": 3}, "c": {"max_retries": 0}});
    assert_eq!(kinds(&place), stored);
    for (given, code, says) in [
        ("{\"kinds\": {\"a\": 7}}", 65, "\"kinds.a\" is an object or null, not 7"),
        ("{\"kinds\": {\"a\": {\"attempts\": 7}}}", 65, "attempts"),
        ("{\"kinds\": {\"a\": {\"max_attempts\": 0}}}", 64, "kind \"a\": max attempts 0: give 1 to"),
        ("{\"kinds\": {\"\": {\"max_attempts\": 1}}}", 65, "kind"),
        ("{\"kinds\": 7}", 65, "\"kinds\" is an object"),
    ] {
        let output = from(given);
        assert_eq!(output.status.code(), Some(code), "{given}: {output:?}");
        assert!(text(&output.stderr).contains(says), "{given}: {output:?}");
    }
    assert_eq!(kinds(&place), stored);
}

#[test]
fn options_of_the_queue_conflict_with_a_kind() {
    let place = Backend::sqlite();
    place.ok(&["tasks", "set", "--kind", "mail", "--max-attempts", "3"]);
    for (args, says) in [
        (&["--kind", "mail", "--key-limit", "7"][..], "--key-limit"),
        (&["--kind", "mail", "--keep-done", "7h"], "--keep-done"),
        (&["--kind", "mail", "--from", "-"], "--from"),
        (&["--inherit"], "--kind"),
        (&["--kind", "mail", "--timeout", "none"], "a kind cannot remove the time-out"),
        (&["--kind", "mail", "--backoff", "2h", "--max-backoff", "1h"], "kind \"mail\": backoff 7200s"),
        (&["--kind", "", "--max-attempts", "3"], "--kind"),
    ] {
        let output = place.run(&[&["tasks", "set"], args].concat());
        assert_eq!(output.status.code(), Some(64), "{args:?}: {output:?}");
        assert!(text(&output.stderr).contains(says), "{args:?}: {output:?}");
    }
    assert_eq!(kinds(&place), json!({"mail": {"max_attempts": 3}}));
}
