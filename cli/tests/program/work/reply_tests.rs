//! Replies of CMD in the file that `INTERVAL_QUEUE_TASK_REPLY` names.

use std::fs;

use serde_json::json;

use super::{add, task, work, worker};
use crate::{
    place_tests::Backend,
    process::{text, wait_until},
};

#[test]
fn the_last_reply_replaces_the_exit_code() {
    let place = Backend::sqlite();
    let reply = |reply: &str| format!("echo '{reply}' >> \"$INTERVAL_QUEUE_TASK_REPLY\"");
    for (script, state, failures, error, result) in [
        (reply("{\"failed\": \"no\"}"), "failed", 1, json!("no"), json!(null)),
        (
            reply("{\"failed\": \"no\", \"permanent\": true}") + "; exit 3",
            "failed",
            1,
            json!("no"),
            json!(null),
        ),
        (reply("{\"done\": [1]}") + "; echo printed; exit 3", "done", 0, json!(null), json!([1])),
        (reply("{\"failed\": \"no\"}") + ";" + &reply("{\"done\": 2}"), "done", 0, json!(null), json!(2)),
        (reply("{\"progress\": [1, 2]}") + "; echo 3", "done", 0, json!(null), json!(3)),
        // Without a newline at its end.
        ("printf '{\"done\": 4}' > \"$INTERVAL_QUEUE_TASK_REPLY\"".into(), "done", 0, json!(null), json!(4)),
        (": > \"$INTERVAL_QUEUE_TASK_REPLY\"; echo 5".into(), "done", 0, json!(null), json!(5)),
    ] {
        let id = add(&place, &["--max-attempts", "1", "1"]);
        let output = work(&place, &script);
        assert!(output.status.success(), "{output:?}");
        let task = task(&place, &id);
        let found = (&task["state"], &task["failures"], &task["error"], &task["result"]);
        assert_eq!(found, (&json!(state), &json!(failures), &error, &result), "{script}: {task:#}");
    }
}

#[test]
fn a_task_can_be_retried_later_or_given_back_without_a_failure() {
    let place = Backend::sqlite();
    let script = "seen=seen-$INTERVAL_QUEUE_TASK_ID; test -e $seen && exit 0; : > $seen; \
                  cat > \"$INTERVAL_QUEUE_TASK_REPLY\"; exit 1";
    let retried = add(&place, &["{\"retry_after\": \"50ms\", \"why\": \"not yet\"}"]);
    let released = add(&place, &["{\"release\": true, \"why\": \"not yet\"}"]);
    assert!(work(&place, script).status.success());
    for id in [&retried, &released] {
        let task = task(&place, id);
        assert_eq!((&task["state"], &task["failures"]), (&json!("done"), &json!(0)), "{task:#}");
        let attempts = task["attempts"].as_array().unwrap();
        assert_eq!(attempts.len(), 1, "one before the last: {task:#}");
        assert_eq!(attempts[0]["error"], "not yet", "{task:#}");
    }
}

#[test]
fn progress_is_read_while_the_command_runs() {
    let place = Backend::sqlite();
    let id = add(&place, &["1"]);
    let script = "echo '{\"progress\": [3, 10, \"page 3\"]}' >> \"$INTERVAL_QUEUE_TASK_REPLY\"; \
                  while ! test -e go; do sleep 0.05; done; echo \"$INTERVAL_QUEUE_TASK_REPLY\"";
    let worker = worker(&place, &["--until-empty", "--lease", "1s"], script);
    wait_until("the progress is stored", || task(&place, &id)["progress"]["done"] == 3);
    fs::write(place.path("go"), "").unwrap();
    assert!(worker.finish().status.success());
    let file = task(&place, &id)["result"].as_str().unwrap().to_owned();
    let directory = std::path::Path::new(&file).parent().unwrap();
    assert!(!directory.exists(), "{file} is left");
}

#[test]
fn an_invalid_reply_fails_the_run_and_is_named() {
    let place = Backend::sqlite();
    for (writes, says) in [
        ("echo hello", "INTERVAL_QUEUE_TASK_REPLY: \"hello\": expected value"),
        ("echo '{\"retry_after\": \"30\"}'", "retry_after: 30 has no unit: write 30ms, 30s or 30min"),
        ("echo '{\"done\": 1}'; echo '{\"don\": 1}'", "unknown field `don`"),
        ("printf '\\377\\376 no \\000 JSON'", "INTERVAL_QUEUE_TASK_REPLY: "),
        ("yes '{\"progress\": [1, 2]}' | head -c 10000000", "the file has more than 1 MiB"),
    ] {
        let id = add(&place, &["--max-attempts", "1", "1"]);
        let script = format!("{{ {writes}; }} > \"$INTERVAL_QUEUE_TASK_REPLY\"");
        let output = work(&place, &script);
        let task = task(&place, &id);
        assert_eq!(task["state"], "failed", "{writes}: {task:#}");
        let error = task["error"].as_str().unwrap();
        assert!(error.contains(says) && error.len() < 300, "{writes}: {task:#}");
        assert!(output.status.success() && text(&output.stderr).is_empty(), "{output:?}");
    }
    let id = add(&place, &["--max-attempts", "1", "1"]);
    work(&place, "mkdir \"$INTERVAL_QUEUE_TASK_REPLY\"");
    assert_eq!(task(&place, &id)["error"], "INTERVAL_QUEUE_TASK_REPLY: it is no file");
}

/// Processes that CMD leaves behind are ended before the file is read for the last time.
#[test]
fn a_reply_after_the_end_has_no_effect() {
    let place = Backend::sqlite();
    let id = add(&place, &["--max-attempts", "1", "1"]);
    let script = "(sleep 60; echo '{\"failed\": \"late\"}' > \"$INTERVAL_QUEUE_TASK_REPLY\") & echo 1";
    assert!(work(&place, script).status.success());
    assert_eq!(task(&place, &id)["state"], "done");
}
