//! Payloads and results come out of the program byte for byte as they went in.

use std::fs;

use serde_json::Value;

use crate::{place_tests::Backend, process::text};

const TEXTS: [&str; 9] = [
    "18446744073709551616",
    "123456.789012345678901234567890",
    "1.10",
    "-0",
    "1E+2",
    "{\"b\":1,\"a\":2}",
    "{\"a\":1,\"a\":2}",
    "\"\\u00e9\\/\"",
    "[ 1,\n 2.50 ]",
];

fn with_input(place: &Backend, args: &[&str], input: &str) -> std::process::Output {
    let file = place.path("input");
    fs::write(&file, input).unwrap();
    place.command(args).stdin(fs::File::open(file).unwrap()).output().unwrap()
}

/// How often a line has this field.
fn count(lines: &str, name: &str, text: &str) -> usize {
    lines.matches(&format!("\"{name}\":{}", text.replace('\n', " "))).count()
}

fn every_door(place: &Backend, url: &str) {
    place.ok(&[&["add", "-q", "--store", url, "--"], &TEXTS[..]].concat());
    let lines = TEXTS.map(|text| text.replace('\n', " ")).join("\r\n");
    let added = with_input(place, &["add", "-q", "--store", url, "-"], &lines);
    assert!(added.status.success(), "{added:?}");
    let ups: Vec<_> =
        TEXTS.iter().zip(0..).map(|(text, n)| format!("\"t{n}\": {{\"payload\": {text}}}")).collect();
    let edges: Vec<_> =
        (0..TEXTS.len()).map(|n| format!("{{\"name\": \"t{n}\", \"as\": \"i{n}\"}}")).collect();
    let join = format!("\"join\": {{\"kind\": \"join\", \"after\": [{}]}}", edges.join(", "));
    let flow = format!("{{{}, {join}}}", ups.join(", "));
    let added = with_input(place, &["add", "--json", "--store", url, "--flow", "-"], &flow);
    assert!(added.status.success(), "{added:?}");
    let ids = serde_json::from_slice::<Value>(&added.stdout).unwrap()["tasks"].clone();

    let work = |kind, script| {
        place.ok(&["work", "--store", url, "--until-empty", "--kind", kind, "--", "sh", "-c", script])
    };
    work("default", "tee payload; { cat payload; echo '|'; } >> payloads");
    work("join", "cat $INTERVAL_QUEUE_TASK_INPUTS > inputs");
    let payloads = fs::read_to_string(place.path("payloads")).unwrap();
    let inputs = fs::read_to_string(place.path("inputs")).unwrap();
    for (text, n) in TEXTS.iter().zip(0..) {
        let ran = payloads.split("|\n").filter(|payload| payload == text).count();
        assert_eq!(ran, if text.contains('\n') { 2 } else { 3 }, "{text} in {payloads}");
        assert!(inputs.contains(&format!("\"i{n}\":{{\"result\":{text},")), "{text} in {inputs}");
    }

    let to = format!("dir:{}", place.path("copied").display());
    place.ok(&["tasks", "copy", "--store", url, "--to", &to]);
    for url in [url, &to] {
        let lines = place.ok(&["tasks", "--store", url, "list", "--json", "--payloads"]);
        assert!(lines.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{lines}");
        for text in TEXTS {
            assert_eq!(
                (count(&lines, "payload", text), count(&lines, "result", text)),
                (3, 3),
                "{text} in {lines}"
            );
        }
    }
    let ids: Vec<_> = (0..TEXTS.len()).map(|n| ids[format!("t{n}")].as_str().unwrap()).collect();
    let waited = place.ok(&[&["tasks", "wait", "--store", url], &ids[..]].concat());
    assert_eq!(waited, TEXTS.map(|text| text.replace('\n', " ") + "\n").concat());
    let waited = place.ok(&[&["tasks", "wait", "--json", "--store", url], &ids[..]].concat());
    for ((text, id), line) in TEXTS.iter().zip(ids).zip(waited.lines()) {
        assert_eq!(count(line, "result", text), 1, "{text} in {line}");
        let shown = place.ok(&["tasks", "show", "--store", url, "--json", id]);
        assert!(shown.contains(&format!("\"payload\": {text},")), "{text} in {shown}");
        assert!(shown.contains(&format!("\"result\": {text},")), "{text} in {shown}");
        place.ok(&["schedule", "add", "--store", url, &format!("of {id}"), "--every", "1h", text]);
    }
    let listed = place.ok(&["schedule", "list", "--store", url, "--json"]);
    assert_eq!(listed.lines().count(), TEXTS.len(), "{listed}");
    for text in TEXTS {
        assert_eq!(count(&listed, "payload", text), 1, "{text} in {listed}");
    }

    let digits = "1".repeat(1_000_000);
    let refused = with_input(place, &["add", "--store", url, "-"], &digits);
    assert_eq!(refused.status.code(), Some(65), "{refused:?}");
    let error = text(&refused.stderr);
    assert!(error.contains("line 1: ") && error.contains("out of range at line 1 column 1000000"), "{error}");
    let long = with_input(place, &["add", "--store", url, "-"], &format!("0.{digits}"));
    let shown = place.ok(&["tasks", "show", "--store", url, "--json", text(&long.stdout).trim()]);
    assert!(shown.contains(&format!("\"payload\": 0.{digits},")));
}

#[test]
fn json_keeps_its_text_on_a_directory() {
    let place = Backend::file();
    every_door(&place, &format!("dir:{}", place.path("jobs").display()));
}

#[test]
fn json_keeps_its_text_on_sqlite() {
    let place = Backend::sqlite();
    every_door(&place, &place.url());
}

#[test]
#[ignore = "needs redis-server: scripts/test runs it"]
fn json_keeps_its_text_on_redis() {
    let place = Backend::redis();
    every_door(&place, &place.url());
}

#[test]
#[ignore = "needs postgresql: scripts/test runs it"]
fn json_keeps_its_text_on_postgres() {
    let place = Backend::postgres();
    every_door(&place, &place.url());
}
