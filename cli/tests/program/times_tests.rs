//! `tasks times` and `tasks set`: how long tasks took, and what holds for all of them.

use serde_json::Value;

use crate::{place_tests::Backend, process::text};

#[test]
fn times_are_told_by_kind() {
    let place = Backend::sqlite();
    place.ok(&["add", "--kind", "quick", "1", "2", "3"]);
    place.ok(&["add", "--kind", "slow", "1"]);
    place.ok(&["work", "--until-empty", "--kind", "quick", "--", "true"]);
    place.ok(&["work", "--until-empty", "--kind", "slow", "--", "sleep", "0.3"]);
    let times: Value = serde_json::from_str(&place.ok(&["tasks", "times", "--json"])).unwrap();
    let kinds = times["kinds"].as_array().unwrap();
    let of = |kind: &str| kinds.iter().find(|times| times["kind"] == kind).unwrap();
    assert_eq!(
        (kinds.len(), &of("quick")["run"]["count"], &of("slow")["wait"]["count"]),
        (2, &3.into(), &1.into())
    );
    let slow = &of("slow")["run"]["lengths"];
    assert_eq!(slow.as_array().unwrap().len(), 1, "{slow}");
    assert!(slow[0]["below_ms"].as_u64().unwrap() >= 512, "{slow}");
    let table = place.ok(&["tasks", "times", "--kind", "slow", "--by-hour"]);
    let lines: Vec<_> = table.lines().collect();
    assert!(lines.len() == 5 && lines[1].starts_with("slow, 20") && lines[1].contains(":00:00Z"), "{table}");
    let words: Vec<_> = lines[4].split_whitespace().skip(2).collect();
    assert_eq!(words, ["1", "1", "0", "0", "0"], "{table}");
    assert_eq!(of("quick")["counts"]["added"], 3);
    place.ok(&["add", "--kind", "quick", "--max-attempts", "1", "4"]);
    place.ok(&["work", "--max-tasks", "1", "--kind", "quick", "--", "false"]);
    let days = place.ok(&["tasks", "times", "--by-day", "--kind", "quick"]);
    let last = days.lines().last().unwrap();
    assert!(last.starts_with("quick, 20") && days.lines().count() == 2, "{days}");
    assert_eq!(last.split_whitespace().skip(2).collect::<Vec<_>>(), ["4", "3", "1", "0", "0"], "{days}");
    let days: Value = serde_json::from_str(&place.ok(&["tasks", "times", "--by-day", "--json"])).unwrap();
    assert_eq!(days["kinds"][0]["days"][0]["counts"]["failed"], 1, "{days}");
    for (args, code, says) in [
        (&["--since", "8days"][..], 64, "at most 7days"),
        (&["--by-day", "--since", "401days"], 64, "at most 400days"),
        (&["--by-day", "--by-hour"], 64, "cannot be used with"),
        (&["--kind", "other"], 66, "no task was added"),
        (&["--since", "1"], 64, "has no unit"),
    ] {
        let output = place.run(&[&["tasks", "times"], args].concat());
        assert_eq!(output.status.code(), Some(code), "{args:?}: {output:?}");
        assert!(text(&output.stderr).contains(says), "{args:?}: {output:?}");
    }
}

#[test]
fn settings_of_a_queue_are_set_and_printed() {
    let place = Backend::sqlite();
    place.ok(&["add", "1"]);
    let set = |args: &[&str]| place.ok(&[&["tasks", "set"], args].concat());
    assert_eq!(
        set(&["--max-running", "3", "--most-done", "100", "--keep-failed", "2h"]),
        "mail: at most 3 running, 1 of a key; at most 5 attempts, 10s to 1h apart; keeps done for 1day, at most 100; failed for 2h; cancelled for 1day\n"
    );
    assert_eq!(
        set(&["--max-running", "none", "--most-done", "none", "--most-cancelled", "0"]),
        "mail: any number running, 1 of a key; at most 5 attempts, 10s to 1h apart; keeps done for 1day; failed for 2h; cancelled for 1day, at most 0\n"
    );
    assert!(set(&[]).ends_with("cancelled for 1day, at most 0\n"), "nothing is changed");
    for (args, says) in [
        (&["--most-done", "-1"][..], "or none"),
        (&["--most-done", "many"], "or none"),
        (&["--key-limit", "0"], "key-limit"),
        (&["--keep-done", "20years"], "at most 10years"),
    ] {
        let output = place.run(&[&["tasks", "set"], args].concat());
        assert_eq!(output.status.code(), Some(64), "{args:?}: {output:?}");
        assert!(text(&output.stderr).contains(says), "{args:?}: {output:?}");
    }
}

#[test]
fn settings_are_written_to_a_file_and_read_from_it() {
    let place = Backend::sqlite();
    place.ok(&["add", "1"]);
    place.ok(&["tasks", "set", "--max-running", "7", "--keep-failed", "3days", "--most-done", "9"]);
    let dumped: Value = serde_json::from_str(&place.ok(&["tasks", "set", "--json"])).unwrap();
    assert_eq!((&dumped["max_running"], &dumped["keep"]["most_done"]), (&7.into(), &9.into()));
    let file = place.path("settings.json");
    let write = |text: &str| std::fs::write(&file, text).unwrap();
    let from = |queue: &str| {
        place.run(&["tasks", "set", "--queue", queue, "--json", "--from", file.to_str().unwrap()])
    };
    write(&dumped.to_string());
    place.ok(&["add", "--queue", "other", "1"]);
    let loaded = from("other");
    assert_eq!(serde_json::from_slice::<Value>(&loaded.stdout).unwrap(), dumped, "{loaded:?}");
    write("{\"max_running\": null, \"policy\": {\"max_attempts\": 2, \"backoff_us\": 5000000}}");
    let changed: Value = serde_json::from_slice(&from("other").stdout).unwrap();
    assert_eq!((&changed["max_running"], &changed["keep"]), (&Value::Null, &dumped["keep"]));
    let policy = &changed["policy"];
    assert_eq!((&policy["max_attempts"], &policy["backoff_us"]), (&2.into(), &5_000_000.into()));
    assert_eq!(policy["max_retries"], dumped["policy"]["max_retries"]);
    for (text, code, says) in [
        ("{\"keep\": {\"dnoe_us\": 1}}", 65, "no setting \"keep.dnoe_us\""),
        ("{\"keep\": 7}", 65, "\"keep\" is an object"),
        ("[1]", 65, "settings are an object"),
        ("{", 65, "no JSON"),
        ("{\"max_payload\": \"many\"}", 65, "many"),
        ("{\"key_limit\": 0}", 64, "key limit 0"),
    ] {
        write(text);
        let output = from("other");
        assert_eq!(output.status.code(), Some(code), "{text}: {output:?}");
        assert!(self::text(&output.stderr).contains(says), "{text}: {output:?}");
    }
    let missing = place.run(&["tasks", "set", "--from", "nowhere.json"]);
    assert!(
        missing.status.code() == Some(66) && text(&missing.stderr).contains("nowhere.json"),
        "{missing:?}"
    );
    let now: Value =
        serde_json::from_str(&place.ok(&["tasks", "set", "--queue", "other", "--json"])).unwrap();
    assert_eq!(now, changed, "what was refused has changed nothing");
}
