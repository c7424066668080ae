//! How it ends, or does not.

use std::fs;

use serde_json::{Value, json};

use super::{AS_PROMISED, bad, failure, left_of, misbehave, tell};
use crate::{
    place_tests::Backend,
    process::{text, wait_until},
    work::{add, lines, task, work, worker},
};

/// What a task came to whose payload tells the command what to do.
fn each<const N: usize>(what: [u32; N], script: &str) -> [(u32, Value); N] {
    let place = Backend::sqlite();
    let ids = what.map(|n| (n, add(&place, &["--max-attempts", "1", &n.to_string()])));
    let output = worker(&place, &["--until-empty", "--jobs", "4"], script).finish();
    assert!(output.status.success(), "{}", text(&output.stderr));
    ids.map(|(n, id)| {
        assert_eq!(left_of(&id), [0; 0]);
        (n, task(&place, &id))
    })
}

#[test]
fn each_signal_is_named() {
    let all = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 24, 25, 26, 27, 29, 30, 31, 34, 40, 64];
    for (signal, task) in each(all, "ulimit -c 0; read n; kill -$n $$; sleep 1000") {
        let error = failure(&task);
        let is_named = match signal {
            9 => error == "killed by SIGKILL",
            15 => error == "killed by SIGTERM",
            // They have no name, or none that is known everywhere.
            16 | 30 | 34.. => error == format!("killed by signal {signal}"),
            _ => error.starts_with("killed by SIG"),
        };
        assert!(is_named, "{signal}: {error}");
    }
    // CHLD, CONT, URG and WINCH, by which nothing ends.
    for (signal, task) in each([17, 18, 23, 28], "read n; kill -$n $$; echo on") {
        assert_eq!(task["result"], "on", "{signal}: {task:#}");
    }
    tell(
        "ends by a signal",
        all.len(),
        "a failed attempt that names it",
        "each failed and was named; no process was left",
    );
}

#[test]
fn each_code_means_what_is_documented() {
    for (code, task) in each([0, 1, 64, 65, 75, 77, 78, 126, 127, 128, 255], "read code; exit $code") {
        if code == 0 {
            assert_eq!(task["state"], "done", "{task:#}");
        } else {
            assert_eq!(failure(&task), format!("exit code {code}"));
        }
    }
    let place = Backend::sqlite();
    let ids = [1, 64, 65, 75, 77, 78, 126, 127].map(|code: u32| (code, add(&place, &[&code.to_string()])));
    let _worker = worker(&place, &[], "read code; exit $code");
    for (code, id) in ids {
        // What may succeed later is tried again later.
        let state = if [64, 65, 77, 78].contains(&code) { "failed" } else { "scheduled" };
        wait_until("it has run", || task(&place, &id)["failures"] == 1);
        wait_until("it is as documented", || task(&place, &id)["state"] == state);
    }
    tell(
        "ends with a code",
        11,
        "0 done, 64, 65, 77 and 78 failed for good, others tried again",
        "each as documented",
    );
}

#[test]
fn a_command_that_ignores_sigterm_is_killed() {
    let task = misbehave(&["--timeout", "300ms"], "trap '' TERM INT HUP; while :; do sleep 0.05; done");
    assert!(failure(&task).starts_with("timed out"), "{task:#}");
    tell("ignores SIGTERM", 1, "killed 3 s after its timeout", failure(&task));
}

#[test]
fn a_command_stopped_past_the_lease_times_out_once() {
    let place = Backend::sqlite();
    let script = "echo $$ >> starts; kill -STOP $$; sleep 1000";
    let task = super::misbehave_with(&place, &["--lease", "2s", "--timeout", "5s"], "1", script);
    assert!(failure(&task).starts_with("timed out"), "{task:#}");
    assert_eq!(lines(&place, "starts").len(), 1);
    tell("stops itself past the lease", 1, "one run, and a failed attempt after its timeout", failure(&task));
}

#[test]
fn a_command_that_kills_its_guard_or_group_has_failed() {
    for (script, reason) in [
        ("kill -KILL $PPID; sleep 1000", "its guard ended"),
        ("kill -KILL -$PPID; sleep 1000", "its guard ended"),
        ("kill -KILL 0", "killed by SIGKILL"),
        ("trap '' TERM; kill -TERM 0; exit 3", "exit code 3"),
    ] {
        let task = misbehave(&[], script);
        assert!(failure(&task).starts_with(reason), "{script}: {task:#}");
    }
    tell("kills its guard, or its process group", 4, "a failed attempt, and nothing is left", AS_PROMISED);
}

#[test]
fn a_command_that_stops_its_guard_is_ended_without_it() {
    let task = misbehave(&["--timeout", "1s"], "kill -STOP $PPID; sleep 1000");
    assert!(failure(&task).starts_with("timed out"), "{task:#}");
    tell("stops its guard", 1, "the worker ends it after its timeout", failure(&task));
}

#[test]
fn a_command_that_kills_its_worker_runs_again_elsewhere() {
    let place = Backend::sqlite();
    let id = add(&place, &["--key", "bad", "1"]);
    let script = "
        for other in $(cat ids 2> /dev/null); do kill -0 $other 2> /dev/null && echo $other >> beside; done
        echo $$ >> ids
        [ $INTERVAL_QUEUE_TASK_ATTEMPT = 1 ] || exit 0
        set -- $(cat /proc/$PPID/stat); kill -KILL $4; sleep 1000";
    let first = worker(&place, &["--lease", "2s"], &bad(script));
    wait_until("it runs", || lines(&place, "ids").len() == 1);
    let _second = worker(&place, &["--lease", "2s"], &bad(script));
    assert!(!first.finish().status.success());
    wait_until("it is done", || task(&place, &id)["state"] == "done");
    let task = task(&place, &id);
    assert_eq!(task["attempts"][0]["end"], "died", "{task:#}");
    assert!(lines(&place, "ids").len() > 1, "it ran again");
    assert_eq!(lines(&place, "beside"), [""; 0]);
    tell(
        "kills its worker",
        1,
        "it is ended by its guard, and runs again after the lease",
        "ended, and run again; 0 runs beside another",
    );
}

#[test]
fn an_unusable_program_ends_the_worker_without_an_attempt() {
    type Spoil = fn(&std::path::Path);
    let spoil: [(Spoil, i32, &str); 4] = [
        (|path| fs::remove_file(path).unwrap(), 127, "not found"),
        (|path| set_mode(path, 0o644), 126, "cannot be executed"),
        (
            |path| {
                fs::remove_file(path).unwrap();
                fs::create_dir(path).unwrap();
            },
            126,
            "is a directory",
        ),
        (|path| fs::write(path, "#!/no/such/shell\n").unwrap(), 127, "/no/such/shell"),
    ];
    for (spoil, code, says) in spoil {
        let place = Backend::sqlite();
        let program = place.path("program");
        fs::write(&program, "#!/bin/sh\necho 1\n").unwrap();
        set_mode(&program, 0o755);
        let first = add(&place, &["1"]);
        let worker = place.spawn(&["work", "--", "./program"]);
        wait_until("the first is done", || task(&place, &first)["state"] == "done");
        spoil(&program);
        let id = add(&place, &["2"]);
        let output = worker.finish();
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        assert!(text(&output.stderr).contains(says), "{output:?}");
        // It is told in the same way at the start.
        let again = place.run(&["work", "--", "./program"]);
        assert_eq!(again.status.code(), Some(code), "{again:?}");
        assert!(text(&again.stderr).contains(says), "{again:?}");
        let task = task(&place, &id);
        assert_eq!((&task["state"], &task["failures"]), (&json!("ready"), &json!(0)), "{task:#}");
    }
    tell(
        "is gone, not executable, or a directory",
        4,
        "`work` ends with 126 or 127; no attempt is lost",
        "each time so, and told on stderr; 0 attempts lost",
    );
}

fn set_mode(path: &std::path::Path, mode: u32) {
    fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
}

#[test]
fn code_127_of_a_shell_is_a_failure_of_the_task() {
    let place = Backend::sqlite();
    let id = add(&place, &["--max-attempts", "1", "1"]);
    assert!(work(&place, "no-such-program").status.success());
    let task = task(&place, &id);
    assert!(
        failure(&task).starts_with("exit code 127: ") && failure(&task).contains("not found"),
        "{task:#}"
    );
}
