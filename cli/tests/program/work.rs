//! `work`: CMD for each stored task, and its guard.

mod guard;
mod host;
mod kept_tests;
mod load;
mod log_tests;
mod misbehaving;
mod outage_tests;
mod rate_tests;
mod reply_tests;
mod several;
mod work_ending;
mod work_output;

use std::fs;

use serde_json::{Value, json};

use crate::{
    place_tests::Backend,
    process::{Process, is_alive, text, wait_until},
};

/// Adds a task. Returns its id.
fn add(place: &Backend, args: &[&str]) -> String {
    place.ok(&[&["add"], args].concat()).trim().to_owned()
}

/// All that is known of it.
fn task(place: &Backend, id: &str) -> Value {
    // It may be more than a pipe holds.
    let output = place.command(&["tasks", "show", id, "--json"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A worker whose CMD is a script.
fn worker(place: &Backend, options: &[&str], script: &str) -> Process {
    place.spawn(&[&["work"], options, &["--", "sh", "-c", script]].concat())
}

/// The same to its end, when nothing is left.
fn work(place: &Backend, script: &str) -> std::process::Output {
    worker(place, &["--until-empty"], script).finish()
}

/// The lines of a file that CMD writes.
fn lines(place: &Backend, name: &str) -> Vec<String> {
    let text = fs::read_to_string(place.path(name)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// The process id that CMD wrote as the last line of a file.
fn written_id(place: &Backend, name: &str) -> u32 {
    let id = || lines(place, name).last().and_then(|line| line.parse().ok());
    wait_until("CMD has written its process id", || id().is_some());
    id().unwrap()
}

#[test]
fn a_command_gets_the_payload_and_gives_the_result() {
    let place = Backend::sqlite();
    let id = add(&place, &["--kind", "letter", "--key", "ada", "--deadline", "1h", "{\"to\": \"Ada\"}"]);
    let script = "cat; env | grep ^INTERVAL_QUEUE_TASK_ | sed 's/REPLY=.*replies-[^/]*/REPLY=/' | sort > env";
    let output = worker(&place, &["--until-empty", "--kind", "letter"], script).finish();
    assert!(output.status.success(), "{output:?}");
    let task = task(&place, &id);
    assert_eq!((&task["state"], &task["result"]), (&json!("done"), &json!({ "to": "Ada" })), "{task:#}");
    let env = lines(&place, "env");
    let deadline = task["deadline_us"].as_u64().unwrap() / 1_000_000;
    let token = task["token"].as_str().unwrap();
    let expected = [
        "INTERVAL_QUEUE_TASK_ATTEMPT=1".to_owned(),
        format!("INTERVAL_QUEUE_TASK_DEADLINE={deadline}"),
        format!("INTERVAL_QUEUE_TASK_ID={id}"),
        "INTERVAL_QUEUE_TASK_KEY=ada".into(),
        "INTERVAL_QUEUE_TASK_KIND=letter".into(),
        "INTERVAL_QUEUE_TASK_QUEUE=mail".into(),
        "INTERVAL_QUEUE_TASK_REPLY=/0.jsonl".into(),
        format!("INTERVAL_QUEUE_TASK_TOKEN={token}"),
    ];
    assert_eq!(env, expected);
}

#[test]
fn other_kinds_are_left_to_others() {
    let place = Backend::sqlite();
    let (own, other) = (add(&place, &["1"]), add(&place, &["--kind", "other", "2"]));
    assert!(work(&place, "cat").status.success());
    assert_eq!(task(&place, &own)["state"], "done");
    assert_ne!(task(&place, &other)["state"], "done");
    let output = work(&place, "cat");
    let says = "queue \"mail\": tasks of kind \"other\" wait, and no worker serves them";
    assert_eq!(text(&output.stderr).matches(says).count(), 1, "{output:?}");
    let output = place.run(&["work", "--until-empty", "--kind", "a", "--kind", "a", "--", "true"]);
    assert_eq!(output.status.code(), Some(64), "{output:?}");
}

#[test]
fn a_living_worker_that_is_declared_lost_ends_its_runs_and_goes_on() {
    let place = Backend::sqlite();
    let id = add(&place, &["1"]);
    let script = "echo $$ >> ids; test \"$(wc -l < ids)\" = 2 && exit 0; exec sleep 1000";
    let mut lost = worker(&place, &[], script);
    let first = written_id(&place, "ids");
    let workers: Value = serde_json::from_str(&place.ok(&["tasks", "workers", "--json"])).unwrap();
    let worker_id = workers["workers"][0]["id"].as_str().unwrap();
    let stranger = "2f6f3cd1-4a55-4a52-b4f9-8f3a4a6de7a1";
    for (worker_id, code, says) in [
        ("2f6f3cd1", 64, "\"2f6f3cd1\" is no id of a worker: give it whole"),
        (
            stranger,
            66,
            "there is no worker 2f6f3cd1-4a55-4a52-b4f9-8f3a4a6de7a1 in this queue that may hold tasks",
        ),
    ] {
        let refused = place.run(&["tasks", "workers", "lost", worker_id]);
        assert!(text(&refused.stderr).contains(says), "{refused:?}");
        assert_eq!(refused.status.code(), Some(code), "{refused:?}");
    }
    place.ok(&["tasks", "workers", "lost", worker_id]);
    wait_until("its run is ended", || !is_alive(first));
    wait_until("the task is done", || task(&place, &id)["state"] == "done");
    let task = task(&place, &id);
    assert_eq!((&task["failures"], &task["attempts"][0]["end"]), (&json!(1), &json!("died")), "{task:#}");
    assert!(task["attempts"][0]["error"].as_str().unwrap().ends_with("was declared lost"), "{task:#}");
    assert_eq!(lost.ended(), None, "it goes on, and has run the task again itself");
}

#[test]
fn the_code_says_what_becomes_of_the_task() {
    let place = Backend::sqlite();
    let once = |code: &str| add(&place, &["--max-attempts", "1", code]);
    let (done, failed, temporary) = (once("0"), once("3"), once("75"));
    let permanent: Vec<_> = ["64", "65", "77", "78"].map(|code| add(&place, &[code])).into();
    let again = add(&place, &["3"]);
    let script = "read code; echo \"code $code it is\" >&2; echo text; exit $code";
    let mut worker = worker(&place, &[], script);
    let ids: Vec<_> = [&done, &failed, &temporary, &again].into_iter().chain(&permanent).collect();
    let is_over = |id: &str| {
        task(&place, id)["attempts"].as_array().is_some_and(|all| !all.is_empty())
            || task(&place, id)["ended_us"].is_u64()
    };
    wait_until("all have run", || ids.iter().all(|id| is_over(id)));
    assert_eq!(worker.ended(), None);
    assert_eq!(task(&place, &done)["result"], "text");
    for (id, code) in [(&failed, 3), (&temporary, 75)] {
        let task = task(&place, id);
        assert_eq!(
            (&task["state"], &task["error"]),
            (&json!("failed"), &json!(format!("exit code {code}: code {code} it is")))
        );
    }
    for id in &permanent {
        let task = task(&place, id);
        assert_eq!((&task["state"], &task["attempts"]), (&json!("failed"), &json!([])), "{task:#}");
    }
    let task = task(&place, &again);
    assert_eq!((&task["state"], &task["failures"]), (&json!("scheduled"), &json!(1)), "{task:#}");
    worker.signal(rustix::process::Signal::TERM);
    let output = worker.finish();
    assert!(text(&output.stderr).contains("code 75 it is\n"), "stderr is passed on: {output:?}");
}

#[tokio::test]
async fn results_of_others_are_in_a_file() {
    use interval_queue_tasks::{Task, TaskQueue};
    let place = Backend::sqlite();
    let queue = TaskQueue::builder("mail").connect(&place.url()).await.unwrap();
    let first = Task::new("default", &"first");
    let second = Task::new("default", &"second").input("number", first.id());
    let ids = queue.add_all([first, second]).await.unwrap();
    let script = "cat ${INTERVAL_QUEUE_TASK_INPUTS:-/dev/stdin}; echo $INTERVAL_QUEUE_TASK_INPUTS > path";
    assert!(work(&place, script).status.success());
    let result = task(&place, &ids[1].id().to_string())["result"].clone();
    let expected =
        json!({ "number": { "task": ids[0].id().to_string(), "state": "done", "result": "first" } });
    assert_eq!(result, expected);
    let path = &lines(&place, "path")[0];
    assert!(path.ends_with(".json") && !std::path::Path::new(path).exists(), "{path}");
}

#[test]
fn starts_keep_the_pace_of_the_queue() {
    let place = Backend::sqlite();
    place.ok(&["add", "-q", "1", "2", "3"]);
    let output =
        worker(&place, &["--until-empty", "--jobs", "3", "--every", "100ms"], "date +%s%N >> starts")
            .finish();
    assert!(output.status.success(), "{output:?}");
    let status = place.status();
    // A start that comes too late for its slot, on a busy machine, takes another one.
    let is_paced = status["interval_us"] == 100_000 && status["ticket"].as_u64() >= Some(3);
    assert!(is_paced, "{status:#}");
    assert_eq!(status["tasks"]["counts"]["done"], 3);
    assert_eq!(lines(&place, "starts").len(), 3);
    let kept = worker(&place, &["--until-empty", "--every", "1s"], "true").finish();
    assert!(text(&kept.stderr).contains("keeps its rate, one start every 100ms"), "{kept:?}");
}

#[test]
fn a_program_that_is_not_there_costs_no_attempt() {
    let place = Backend::sqlite();
    let output = place.run(&["work", "--", "no-such-program"]);
    assert_eq!(output.status.code(), Some(127), "{output:?}");
    let id = add(&place, &["1"]);
    let program = place.path("program");
    fs::write(&program, "#!/bin/sh\n").unwrap();
    fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    place.ok(&["pause"]);
    let worker = place.spawn(&["work", "--", "./program"]);
    wait_until("the worker is there", || place.ok(&["tasks", "--over", "0s"]).contains("program pid"));
    fs::remove_file(&program).unwrap();
    place.ok(&["resume"]);
    let output = worker.finish();
    assert_eq!(output.status.code(), Some(127), "{output:?}");
    assert!(text(&output.stderr).contains("./program not found"), "{output:?}");
    let task = task(&place, &id);
    assert_eq!((&task["state"], &task["failures"]), (&json!("ready"), &json!(0)), "{task:#}");
}
