//! `work --lines`: commands that are kept. The CMDs are of Python's standard library.

use std::{collections::HashSet, fs, thread::sleep, time::Duration};

use rustix::process::{Signal, kill_process};
use serde_json::{Value, json};

use super::{add, lines, task};
use crate::{
    place_tests::Backend,
    process::{Process, is_alive, pid, text, wait_until},
};

/// A CMD that runs this for each line, as `run`; `answer` answers it.
fn script(body: &str) -> String {
    let body: String = body.lines().map(|line| format!("    {line}\n")).collect();
    format!(
        "import fcntl, json, os, sys, time\n\
         def answer(run, **said):\n    print(json.dumps({{'id': run['id'], **said}}), flush=True)\n\
         for line in sys.stdin:\n    run = json.loads(line)\n{body}"
    )
}

fn worker(place: &Backend, options: &[&str], body: &str) -> Process {
    let script = script(body);
    place.spawn(&[&["work", "--lines"], options, &["--", "python3", "-c", &script]].concat())
}

fn work(place: &Backend, options: &[&str], body: &str) -> std::process::Output {
    worker(place, &[&["--until-empty"], options].concat(), body).finish()
}

const DONE: &str = "answer(run, done=run['payload'])";

#[test]
fn a_kept_command_runs_one_task_after_the_other() {
    let place = Backend::sqlite();
    let first = add(&place, &["--kind", "a", "--key", "k", "--deadline", "1h", "{\"x\":\n\"two\\nlines\"}"]);
    let ids: Vec<_> = (0..30).map(|n| add(&place, &[&n.to_string()])).collect();
    let body = "run['pid'] = os.getpid()\nanswer(run, done=run)";
    let output = work(&place, &["--jobs", "3", "--kind", "a", "--kind", "default"], body);
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    let runs: Vec<Value> = ids.iter().map(|id| task(&place, id)["result"].clone()).collect();
    assert!(runs.iter().enumerate().all(|(n, run)| run["payload"] == n && run["attempt"] == 1), "{runs:?}");
    assert_eq!(runs.iter().map(|run| run["id"].as_u64().unwrap()).collect::<HashSet<_>>().len(), 30);
    let processes: HashSet<_> = runs.iter().map(|run| run["pid"].as_u64().unwrap()).collect();
    assert!((1..=3).contains(&processes.len()), "{processes:?}");
    for id in processes {
        assert!(!is_alive(id.try_into().unwrap()), "it ends with the worker");
    }
    let stored = task(&place, &first);
    let run = &stored["result"];
    assert_eq!((&run["kind"], &run["key"], &run["queue"]), (&json!("a"), &json!("k"), &json!("mail")));
    assert_eq!((&run["task"], &run["token"]), (&json!(first), &stored["token"]));
    assert_eq!(run["deadline"], stored["deadline_us"].as_u64().unwrap() / 1_000_000);
    assert_eq!(run["payload"], json!({"x": "two\nlines"}));
}

#[test]
fn results_of_upstreams_are_in_the_line() {
    let place = Backend::sqlite();
    fs::write(place.path("flow.json"), r#"{"a": {"payload": 2}, "b": {"payload": null, "after": "a"}}"#)
        .unwrap();
    let flow = place.ok(&["add", "--flow", place.path("flow.json").to_str().unwrap(), "--json"]);
    let flow: Value = serde_json::from_str(&flow).unwrap();
    let body = "answer(run, done=run['payload'] or run['inputs']['a']['result'] * 3)";
    assert!(work(&place, &[], body).status.success());
    assert_eq!(task(&place, flow["tasks"]["b"].as_str().unwrap())["result"], 6);
}

#[test]
fn the_answer_says_what_becomes_of_the_task() {
    let place = Backend::sqlite();
    let answers = [
        json!({"failed": "no such page"}),
        json!({"failed": "no such host", "permanent": true}),
        json!({"retry_after": "1h", "why": "busy"}),
    ];
    let [failed, permanent, retried] =
        answers.map(|answer| add(&place, &["--max-attempts", "2", &answer.to_string()]));
    let released = add(&place, &["--kind", "released", "1"]);
    let body = "if run['kind'] == 'default':\n    answer(run, **run['payload'])\n\
                elif not os.path.exists('seen'):\n    open('seen', 'w')\n    answer(run, release=True, why='later')\n\
                else:\n    answer(run, done=1)";
    let mut worker = worker(&place, &["--kind", "default", "--kind", "released"], body);
    let has_run = |id: &str| ["scheduled", "failed"].iter().any(|state| task(&place, id)["state"] == *state);
    wait_until("all have run", || [&failed, &permanent, &retried].iter().all(|id| has_run(id)));
    wait_until("it ran again", || task(&place, &released)["state"] == "done");
    assert_eq!(worker.ended(), None);
    let [failed, permanent, retried, released] =
        [failed, permanent, retried, released].map(|id| task(&place, &id));
    assert_eq!((&failed["state"], &failed["failures"]), (&json!("scheduled"), &json!(1)), "{failed:#}");
    assert_eq!(failed["error"], "no such page");
    assert_eq!((&permanent["state"], &permanent["error"]), (&json!("failed"), &json!("no such host")));
    assert_eq!((&retried["state"], &retried["failures"]), (&json!("scheduled"), &json!(0)), "{retried:#}");
    let wait = retried["not_before_us"].as_u64().unwrap() - retried["leased_us"].as_u64().unwrap();
    assert!(wait > 3_000_000_000, "{retried:#}");
    assert_eq!((&released["failures"], released["attempts"].as_array().unwrap().len()), (&json!(0), 1));
}

#[test]
fn progress_is_stored_while_the_task_runs() {
    let place = Backend::sqlite();
    let id = add(&place, &["1"]);
    let body = "answer(run, progress=[3, 10, 'page 3'])\nwhile not os.path.exists('go'):\n    time.sleep(0.01)\n\
                answer(run, done=1)";
    let worker = worker(&place, &["--until-empty", "--lease", "1s"], body);
    wait_until("the progress is stored", || task(&place, &id)["progress"]["done"] == 3);
    assert_eq!(task(&place, &id)["progress"]["text"], "page 3");
    fs::write(place.path("go"), "").unwrap();
    assert!(worker.finish().status.success());
    assert_eq!(task(&place, &id)["state"], "done");
}

#[test]
fn a_command_that_ends_after_each_answer_costs_no_attempt() {
    let place = Backend::sqlite();
    let ids: Vec<_> = (0..20).map(|n| add(&place, &["--max-attempts", "1", &n.to_string()])).collect();
    let output = work(&place, &[], &format!("{DONE}\nsys.exit()"));
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    for id in ids {
        assert_eq!(task(&place, &id)["state"], "done");
    }
}

#[test]
fn a_command_that_cannot_be_trusted_costs_its_task_an_attempt() {
    let place = Backend::sqlite();
    for (body, says) in [
        ("print('hello', flush=True)", "CMD printed what is no answer, \"hello\": expected value"),
        (
            "print('{}', flush=True)",
            "give exactly one of done, failed, retry_after, release, progress, log and group",
        ),
        ("answer({'id': 99}, done=1)", "CMD answered run 99 instead of 1: copy \"id\" into each answer"),
        ("print('{\"done\": 1}', flush=True)", "CMD answered without \"id\""),
        (
            "sys.stdout.write('{\"id\": 1, \"do')\nsys.exit()",
            "CMD ended within the line \"{\\\"id\\\": 1, \\\"do\"",
        ),
        ("sys.stdout.write('{\"id\": 1, \"done\": 1}')\nsys.exit()", "write a newline after each answer"),
        ("print('x' * (1 << 21), flush=True)", "CMD answered with a line of more than 1 MiB"),
        ("sys.exit('oops')", "exit code 1: oops"),
        ("sys.exit(65)", "exit code 65"),
        ("sys.exit()", "CMD ended without an answer"),
        ("os.kill(os.getpid(), 9)", "killed by SIGKILL"),
    ] {
        let id = add(&place, &["--max-attempts", "1", "1"]);
        let output = work(&place, &[], body);
        assert!(output.status.success(), "{body}: {output:?}");
        let task = task(&place, &id);
        let error = task["error"].as_str().unwrap();
        assert!(task["state"] == "failed" && error.contains(says), "{body}: {task:#}");
        assert!(
            text(&output.stderr).contains("CMD is started again in 100ms: while it ran task"),
            "{output:?}"
        );
    }
}

#[test]
fn tasks_of_a_command_that_dies_are_done_by_the_next_one() {
    let place = Backend::sqlite();
    place.ok(&["tasks", "set", "--backoff", "10ms", "--max-attempts", "20"]);
    let ids: Vec<_> = (0..20).map(|n| add(&place, &[&n.to_string()])).collect();
    // Some answer twice, some die after the answer, some before it.
    let body = "answer(run, done=run['payload'])\nif run['payload'] % 3 == 0:\n    answer(run, done='twice')\n\
                if run['payload'] % 5 == 1:\n    os._exit(3)\n\
                if run['payload'] % 5 == 2 and run['attempt'] < 2:\n    answer(run, done='late')";
    let output = work(&place, &["--jobs", "2"], body);
    assert!(output.status.success(), "{output:?}");
    for (n, id) in ids.iter().enumerate() {
        let task = task(&place, id);
        assert_eq!((&task["state"], &task["result"]), (&json!("done"), &json!(n)), "{task:#}");
    }
}

#[test]
fn only_unexpected_ends_between_tasks_are_reported() {
    for (end, reported) in [
        ("sys.exit(0)", ""),
        ("sys.exit(3)", "CMD ended (exit code 3) while it had no task: another one is started"),
        ("print('late', flush=True)", "CMD printed a line while it had no task: another one is started"),
    ] {
        let place = Backend::sqlite();
        let first = add(&place, &["1"]);
        let body = format!("answer(run, done=os.getpid())\ntime.sleep(0.2)\n{end}");
        let worker = worker(&place, &["--max-tasks", "2"], &body);
        wait_until("the first task is done", || task(&place, &first)["state"] == "done");
        // CMD ends, or prints, 0.2 s after its answer.
        sleep(Duration::from_secs(1));
        let second = add(&place, &["2"]);
        let output = worker.finish();
        let (first, second) = (task(&place, &first), task(&place, &second));
        assert_eq!((&second["state"], &second["failures"]), (&json!("done"), &json!(0)));
        assert_ne!(first["result"], second["result"], "another process runs the second task");
        let lines = text(&output.stderr);
        assert_eq!(lines.trim().trim_start_matches("interval-queue: "), reported, "{end}");
    }
}

#[test]
fn a_command_that_never_answers_is_ended_by_the_timeout() {
    let place = Backend::sqlite();
    let says =
        "open('pid', 'w').write(f'{os.getpid()}\\n')\nprint('it hangs', file=sys.stderr, flush=True)\n";
    for waits in ["time.sleep(1000)", "while True:\n    answer(run, progress=[1, 2])"] {
        let id = add(&place, &["--max-attempts", "1", "1"]);
        assert!(work(&place, &["--timeout", "1s"], &format!("{says}{waits}")).status.success());
        let task = task(&place, &id);
        assert_eq!((&task["state"], &task["error"]), (&json!("failed"), &json!("timed out: it hangs")));
        assert!(!is_alive(lines(&place, "pid")[0].parse().unwrap()));
    }
}

#[test]
fn a_cancelled_run_is_told_and_then_ended() {
    let place = Backend::sqlite();
    let polite = "if 'cancel' in run:\n    open('told', 'w')\n    answer(run, release=True)\nelse:\n    open('runs', 'w')";
    let deaf = "open('runs', 'w').write(f'{os.getpid()}\\n')\ntime.sleep(1000)";
    for (body, is_told) in [(polite, true), (deaf, false)] {
        let id = add(&place, &["1"]);
        let worker = worker(&place, &["--until-empty", "--lease", "1s"], body);
        wait_until("it runs", || place.path("runs").exists());
        wait_until("its process is known", || is_told || !lines(&place, "runs").is_empty());
        place.ok(&["tasks", "cancel", &id]);
        assert!(worker.finish().status.success());
        assert_eq!(task(&place, &id)["state"], "cancelled");
        assert_eq!(place.path("told").exists(), is_told);
        if !is_told {
            assert!(!is_alive(lines(&place, "runs")[0].parse().unwrap()));
        }
        let _ = (fs::remove_file(place.path("told")), fs::remove_file(place.path("runs")));
    }
}

#[test]
fn a_command_that_cannot_be_kept_is_refused() {
    let place = Backend::sqlite();
    let id = add(&place, &["1"]);
    for (args, code, says) in [
        (&["work", "--lines", "--dir", "x"][..], 64, "cannot be used with"),
        (&["work", "--lines", "--also", "other", "--", "cat"], 64, "cannot be used with"),
        (&["work", "--lines", "--", "no-such-program"], 127, "no-such-program"),
    ] {
        let output = place.run(args);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {output:?}");
        assert!(text(&output.stderr).contains(says), "{args:?}: {output:?}");
    }
    // What disappears after the start.
    fs::write(place.path("once"), "#!/bin/sh\nrm once\n").unwrap();
    place.shell("chmod +x once").finish();
    let output = place.run(&["work", "--lines", "--", "./once"]);
    assert_eq!(output.status.code(), Some(127), "{output:?}");
    assert_eq!(task(&place, &id)["failures"], 1, "its first CMD ended without an answer");
}

/// Nothing is lost, and nothing runs twice at once: CMD holds a lock on a file of the task.
#[test]
fn kept_commands_survive_kill_9_of_all_parts() {
    let mut place = Backend::postgres();
    place.ok(&["tasks", "set", "--backoff", "10ms", "--max-attempts", "1000"]);
    for _ in 0..4 {
        place.ok(&[&["add", "-q"][..], &["1"; 50]].concat());
    }
    let body = "lock = open(run['task'], 'w')\ntry:\n    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)\n\
                except OSError:\n    open('twice', 'w').write(line)\n\
                open('pids', 'a').write(f'{os.getpid()}\\n')\ntime.sleep(0.02)\nanswer(run, done=1)\nlock.close()";
    let start = |place: &Backend| worker(place, &["--jobs", "3", "--lease", "2s"], body);
    let mut workers = vec![start(&place), start(&place)];
    for round in 0..6 {
        let before = lines(&place, "pids").len();
        wait_until("tasks run", || lines(&place, "pids").len() > before + 5);
        match round % 3 {
            0 => {
                let last = lines(&place, "pids").last().unwrap().parse().unwrap();
                // It may have ended.
                let _ = kill_process(pid(last), Signal::KILL);
            }
            1 => {
                workers[0].signal(Signal::KILL);
                workers[0] = start(&place);
            }
            _ => {
                place.take_away();
                sleep(Duration::from_millis(500));
                place.bring_back();
            }
        }
    }
    let left = || {
        place.ok(&[
            "tasks",
            "list",
            "--count",
            "--state",
            "waiting",
            "--state",
            "leased",
            "--state",
            "scheduled",
        ])
    };
    wait_until("all are done", || left().trim() == "0");
    assert_eq!(place.ok(&["tasks", "list", "--count", "--state", "done"]).trim(), "200");
    assert!(!place.path("twice").exists(), "{:?}", fs::read_to_string(place.path("twice")));
    for worker in workers {
        worker.signal(Signal::TERM);
        assert!(!worker.finish().status.success(), "a signal is its end");
    }
    assert!(work(&place, &[], DONE).status.success());
}
