//! What it does with what it is given: payload, inputs, environment and directory.

use std::fs;

use interval_queue_tasks::{Task, TaskQueue};
use serde_json::json;

use super::{AS_PROMISED, misbehave_with, tell};
use crate::{
    place_tests::Backend,
    process::wait_until,
    work::{add, lines, task, work},
};

#[test]
fn an_unread_large_payload_is_in_no_environment() {
    let payload = format!("\"{}\"", "x".repeat((1 << 20) - 2));
    for script in ["exec <&-; echo 1", "exec < /dev/null; sleep 0.3; echo 1", "head -c 1 > /dev/null; echo 1"]
    {
        let task = misbehave_with(&Backend::sqlite(), &[], &payload, script);
        assert_eq!(task["result"], 1, "{script}: {task:#}");
    }
    let task = misbehave_with(&Backend::sqlite(), &[], &payload, "env | wc -c");
    assert!(task["result"].as_u64().unwrap() < 100_000, "{}", task["result"]);
    tell("leaves a payload of 1 MiB unread", 4, "it is none the worse", AS_PROMISED);
}

#[tokio::test]
async fn inputs_may_be_deleted_or_replaced() {
    for script in ["rm $file", "rm $file; mkdir $file", ": > $file", "chmod 0 $file"] {
        let place = Backend::sqlite();
        let queue = TaskQueue::builder("mail").connect(&place.url()).await.unwrap();
        let first = Task::new("default", &1);
        let second = Task::new("default", &2).input("number", first.id());
        let third = Task::new("default", &3).input("number", second.id());
        let ids = queue.add_all([first, second, third]).await.unwrap();
        let script = format!(
            "file=$INTERVAL_QUEUE_TASK_INPUTS; echo $file >> files; [ -z $file ] || {{ {script}; }}; cat"
        );
        let output = work(&place, &script);
        assert!(output.status.success(), "{output:?}");
        let last = task(&place, &ids[2].id().to_string());
        assert_eq!((&last["state"], &last["result"]), (&json!("done"), &json!(3)), "{script}: {last:#}");
        for file in lines(&place, "files").iter().filter(|file| !file.is_empty()) {
            // A directory is not what was made; whoever made it has it.
            let _ = fs::remove_dir(file);
            assert!(!std::path::Path::new(file).exists(), "{file}");
        }
    }
    tell("deletes or replaces the file with its inputs", 4, "it is none the worse", "done each time");
}

#[test]
fn its_directory_may_be_removed() {
    let place = Backend::sqlite();
    fs::create_dir(place.path("here")).unwrap();
    let (first, second) = (add(&place, &["1"]), add(&place, &["2"]));
    let script = "cd here && \"$IQ\" work --until-empty -- sh -c 'cd /; rm -rf \"$HERE\"; cat' 2> ../errors";
    let run = place.shell(&format!("export HERE=\"$PWD/here\"; {script}")).finish();
    assert!(run.status.success(), "{run:?}");
    assert!(!place.path("here").exists());
    for (id, result) in [(first, 1), (second, 2)] {
        wait_until("it has ended", || task(&place, &id)["ended_us"].is_u64());
        assert_eq!(task(&place, &id)["result"], result);
    }
    tell("removes the directory of its worker", 1, "the next task runs all the same", "all done");
}
