//! Logs of runs, and notes.

use serde_json::{Value, json};

use super::{add, task, work, worker};
use crate::{
    place_tests::Backend,
    process::{text, wait_until},
};

fn texts(task: &Value) -> Vec<String> {
    task["log"].as_array().unwrap().iter().map(|line| line["text"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn stderr_of_each_run_is_its_log() {
    for place in [Backend::sqlite(), Backend::directory()] {
        let id = add(&place, &["1"]);
        place.ok(&["tasks", "set", "--backoff", "1ms"]);
        let script = "echo \"attempt $INTERVAL_QUEUE_TASK_ATTEMPT\" >&2; printf 'ü\\033[2J\\377' >&2; \
                      test $INTERVAL_QUEUE_TASK_ATTEMPT = 2";
        let output = work(&place, script);
        assert!(text(&output.stderr).contains("attempt 1"), "stderr is printed as before: {output:?}");
        let task = task(&place, &id);
        assert_eq!(texts(&task), ["attempt 1", "ü\u{1b}[2J\u{fffd}", "attempt 2", "ü\u{1b}[2J\u{fffd}"]);
        let log = task["log"].as_array().unwrap();
        assert_eq!(
            (&log[0]["number"], &log[1]["number"], &log[2]["number"]),
            (&json!(1), &json!(2), &json!(1))
        );
        assert_eq!((&log[0]["token"], &log[3]["token"]), (&task["attempts"][0]["token"], &task["token"]));
        let page = place.ok(&["tasks", "show", &id]);
        assert!(page.contains(" attempt 1: attempt 1\n") && page.contains(" attempt 2: ü"), "{page}");
        assert!(!page.contains('\u{1b}'), "{page}");
    }
}

#[test]
fn a_chatty_run_keeps_its_last_lines() {
    let place = Backend::sqlite();
    let id = add(&place, &["1"]);
    let script = "seq 5000 >&2; head -c 1048576 /dev/zero | tr '\\0' x >&2; echo >&2; echo last >&2";
    assert!(work(&place, script).status.success());
    let stored = task(&place, &id);
    let texts = texts(&stored);
    assert_eq!((texts.len(), texts.last().unwrap().as_str()), (64, "last"));
    assert_eq!((texts[61].as_str(), texts[62].as_str()), ("5000", "x".repeat(500).as_str()));
    assert_eq!(stored["log"][63]["number"], 5_002);
    let page = place.ok(&["tasks", "show", &id]);
    assert!(page.contains("[4938 lines of attempt 1 are not stored]"), "{page}");
    let none = add(&place, &["1"]);
    let output = place.run(&["work", "--no-log", "--until-empty", "--", "sh", "-c", "echo x >&2"]);
    assert!(output.status.success());
    assert_eq!(task(&place, &none)["log"], json!([]));
}

#[test]
fn a_log_is_stored_while_the_command_runs() {
    let place = Backend::sqlite();
    let id = add(&place, &["1"]);
    let script = "echo begun >&2; echo '{\"log\": \"by reply\"}' >> \"$INTERVAL_QUEUE_TASK_REPLY\"; \
                  while ! test -e go; do sleep 0.05; done";
    let worker = worker(&place, &["--until-empty", "--lease", "1s"], script);
    wait_until("both lines are stored", || texts(&task(&place, &id)).len() == 2);
    std::fs::write(place.path("go"), "").unwrap();
    assert!(worker.finish().status.success());
    assert_eq!(texts(&task(&place, &id)), ["begun", "by reply"]);
}

#[test]
fn a_kept_command_logs_for_the_run_that_it_has() {
    let place = Backend::sqlite();
    let ids: Vec<_> = (0..3).map(|n| add(&place, &["--max-attempts", "1", &n.to_string()])).collect();
    let script = "import json, sys, time\n\
                  for line in sys.stdin:\n    run = json.loads(line)\n    n = run['payload']\n\
                  \x20   print('stderr', n, file=sys.stderr, flush=True)\n    time.sleep(0.3)\n\
                  \x20   for said in [{'log': f'line {n}'}, {'group': 'g'}, {'failed': f'no {n}'}]:\n\
                  \x20       print(json.dumps({'id': run['id'], **said}), flush=True)\n";
    let output = place.run(&["work", "--lines", "--until-empty", "--", "python3", "-c", script]);
    assert!(output.status.success(), "{output:?}");
    for (n, id) in ids.iter().enumerate() {
        let task = task(&place, id);
        assert_eq!(texts(&task), [format!("stderr {n}"), format!("line {n}")]);
        assert_eq!(task["error"], format!("[group g] no {n}"));
    }
    let failures: Value = serde_json::from_str(&place.ok(&["tasks", "failures", "--json"])).unwrap();
    assert_eq!(failures["groups"].as_array().unwrap().len(), 1, "{failures:#}");
    assert_eq!(
        (&failures["groups"][0]["count"], &failures["groups"][0]["common"]),
        (&json!(3), &json!("[group g]"))
    );
}

#[test]
fn notes_are_added_and_invalid_ones_rejected() {
    let place = Backend::sqlite();
    let id = add(&place, &["1"]);
    place.ok(&["tasks", "note", &id, " called Ada "]);
    place.ok(&["tasks", "note", &id[20..], "--", "-x-"]);
    assert_eq!(texts(&task(&place, &id)), ["called Ada", "-x-"]);
    assert!(place.ok(&["tasks", "show", &id]).contains(" note: called Ada\n"));
    let long = "x".repeat(501);
    for (args, code, says) in [
        (["0195700000000000", "x"], 66, "0195700000000000"),
        ([id.as_str(), " "], 64, "the note is empty"),
        ([&id, "two\nlines"], 64, "has several lines"),
        ([&id, &long], 64, "501 characters: give at most 500"),
    ] {
        let output = place.run(&["tasks", "note", args[0], args[1]]);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {output:?}");
        assert!(text(&output.stderr).contains(says), "{args:?}: {output:?}");
    }
}
