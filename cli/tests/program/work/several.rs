//! Several queues of one worker, and a program for each kind.

use std::{fs, os::unix::fs::PermissionsExt};

use rustix::process::Signal;
use serde_json::json;

use super::{lines, task};
use crate::{
    place_tests::Backend,
    process::{Process, text, wait_until},
};

/// Adds tasks to another queue of the place.
fn add_to(place: &Backend, queue: &str, many: usize) {
    for _ in 0..many {
        place.ok(&["add", "--queue", queue, "1"]);
    }
}

const LOG: &str = "echo $INTERVAL_QUEUE_TASK_QUEUE >> log";

#[test]
fn the_first_queue_is_served_first() {
    let place = Backend::sqlite();
    for queue in ["last", "then", "mail"] {
        add_to(&place, queue, 3);
    }
    let also = ["work", "--until-empty", "--also", "then", "--also", "last", "--", "sh", "-c", LOG];
    let output = place.run(&also);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(lines(&place, "log").join(" "), "mail mail mail then then then last last last");
}

#[test]
fn each_queue_has_its_turn_and_all_share_the_jobs() {
    let place = Backend::sqlite();
    for queue in ["mail", "then"] {
        add_to(&place, queue, 4);
    }
    let options = ["work", "--until-empty", "--also", "then", "--queue-order", "round-robin", "--jobs", "2"];
    let script = format!(
        "{LOG}; mkdir one 2>/dev/null || mkdir two || touch more; sleep 0.2; rmdir two 2>/dev/null || rmdir one"
    );
    let output = place.run(&[&options[..], &["--", "sh", "-c", &script]].concat());
    assert!(output.status.success(), "{output:?}");
    let log = lines(&place, "log");
    assert_eq!(log.len(), 8, "{log:?}");
    // The one that is there first may fill both places before there is another one.
    let early = log[..4].iter().filter(|queue| *queue == "mail").count();
    assert!((1..=3).contains(&early), "{log:?}");
    assert!(!place.path("more").exists(), "three ran at once");
}

#[test]
fn one_signal_ends_the_workers_of_all_queues() {
    let place = Backend::sqlite();
    for queue in ["mail", "then"] {
        add_to(&place, queue, 1);
    }
    let options = ["work", "--also", "then", "--jobs", "2", "--", "sh", "-c"];
    let worker = place.spawn(&[&options[..], &[&format!("{LOG}; sleep 1; echo done >> ends")]].concat());
    wait_until("both run", || lines(&place, "log").len() == 2);
    worker.signal(Signal::TERM);
    let output = worker.finish();
    assert_eq!(lines(&place, "ends"), ["done", "done"], "{output:?}");
    assert!(text(&output.stderr).contains("stopping"), "{output:?}");
}

#[test]
fn invalid_sets_of_queues_are_rejected() {
    let place = Backend::sqlite();
    let cases: [(&[&str], &str); 5] = [
        (&["--also", "then", "--capacity", "3"], "--capacity belongs to one queue"),
        (&["--also", "mail"], "\"mail\" is named twice"),
        (&["--also", "then", "--every", "1s"], "a rate belongs to one queue"),
        (&["--queue-order", "shuffled"], "--also"),
        (&["--also", "then", "--queue-order", "sometimes"], "in-order"),
    ];
    for (options, wanted) in cases {
        let output = place.run(&[&["work", "--until-empty"], options, &["--", "true"]].concat());
        assert_eq!(output.status.code(), Some(64), "{output:?}");
        assert!(text(&output.stderr).contains(wanted), "{output:?}");
    }
}

/// Puts a script into the directory `tasks`.
fn program(place: &Backend, name: &str, script: &str) {
    let path = place.path("tasks").join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn each_kind_has_a_program_in_a_directory() {
    let place = Backend::sqlite();
    program(&place, "double", "read n; echo $((n * 2))");
    program(&place, "shout", "tr a-z A-Z");
    program(&place, ".hidden", "exit 1");
    fs::write(place.path("tasks").join("README"), "what is here").unwrap();
    let add = |kind: &str, payload: &str| place.ok(&["add", "--kind", kind, payload]).trim().to_owned();
    let ids = [add("double", "21"), add("shout", "\"ada\""), add("README", "1"), add("double", "4")];
    let output = place.run(&["work", "--until-empty", "--dir", "tasks", "--kind", "shout"]);
    assert!(output.status.success(), "{output:?}");
    assert_ne!(task(&place, &ids[0])["state"], "done", "it is of another kind");
    let output = place.run(&["work", "--until-empty", "--jobs", "2", "--dir", "tasks"]);
    assert!(output.status.success(), "{output:?}");
    let results = ids.each_ref().map(|id| task(&place, id)["result"].clone());
    assert_eq!(serde_json::to_string(&results).unwrap(), "[42,\"ADA\",null,8]");
    assert_ne!(task(&place, &ids[2])["state"], "done", "a file that cannot be executed is no program");

    for (options, code, wanted) in [
        (&["--dir", "none"][..], 66, "none"),
        (&["--dir", "tasks", "--kind", "README"], 126, "`chmod +x tasks/README` may be missing"),
        (&["--dir", "tasks", "--kind", "none"], 127, "tasks/none not found"),
        (&["--dir", "."], 127, "has no program"),
        (&["--dir", "tasks", "--", "true"], 64, "--dir"),
        (&[], 64, "CMD"),
    ] {
        let output = place.run(&[&["work", "--until-empty"], options].concat());
        assert_eq!(output.status.code(), Some(code), "{options:?}: {output:?}");
        assert!(text(&output.stderr).contains(wanted), "{output:?}");
    }
}

#[test]
fn a_program_that_cannot_be_used_sets_its_kind_alone_aside() {
    let place = Backend::sqlite();
    program(&place, "double", "read n; echo $((n * 2))");
    program(&place, "shout", "tr a-z A-Z");
    program(&place, "bad", "true");
    let bad = place.path("tasks").join("bad");
    fs::write(&bad, "#!/no/such/interpreter\n").unwrap();
    let add = |kind: &str, payload: &str| place.ok(&["add", "--kind", kind, payload]).trim().to_owned();
    let state = |id: &str| task(&place, id)["state"].as_str().unwrap().to_owned();
    let mut command = place.command(&["work", "--jobs", "2", "--dir", "tasks"]);
    let stderr = fs::File::create(place.path("stderr")).unwrap();
    let worker = Process::adopt(command.stderr(stderr).spawn().unwrap());
    let first = add("double", "1");
    wait_until("the worker works", || state(&first) == "done");
    fs::remove_file(place.path("tasks").join("double")).unwrap();
    let waiting = [add("double", "2"), add("double", "3"), add("bad", "1")];
    let printed = || lines(&place, "stderr");
    wait_until("both are set aside", || printed().len() == 2);
    let shouted = add("shout", "\"ada\"");
    wait_until("the others go on", || state(&shouted) == "done");
    for id in &waiting {
        let task = task(&place, id);
        assert_eq!((&task["state"], &task["failures"]), (&json!("ready"), &json!(0)), "{task:#}");
    }
    let printed_now = printed();
    assert!(printed_now[0].starts_with("interval-queue: kind \"bad\" is set aside: "), "{printed_now:?}");
    assert!(printed_now[0].contains("/no/such/interpreter"), "{printed_now:?}");
    assert!(
        printed_now[1].contains("kind \"double\" is set aside: tasks/double not found"),
        "{printed_now:?}"
    );
    program(&place, "double", "read n; echo $((n * 3))");
    wait_until("it is taken up", || waiting[..2].iter().all(|id| state(id) == "done"));
    assert_eq!(task(&place, &waiting[0])["result"], 6);
    assert_eq!(state(&waiting[2]), "ready");
    worker.signal(Signal::TERM);
    worker.finish();
    assert_eq!(printed().iter().filter(|line| line.contains("is set aside")).count(), 2, "{:?}", printed());

    // It is not waited for in vain, and not passed over in silence.
    let output = place.run(&["work", "--until-empty", "--dir", "tasks"]);
    assert_eq!(output.status.code(), Some(127), "{output:?}");
    assert!(text(&output.stderr).contains("tasks of kind \"bad\" are left: "), "{output:?}");
}
