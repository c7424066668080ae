//! `tasks watch`: alerts on the status of a queue.

use std::{fs, net::TcpListener};

use rustix::process::Signal;
use serde_json::Value;

use crate::{
    place_tests::Backend,
    process::{Process, is_alive, text, wait_until},
    tasks_schema::{check, closed},
};

fn lines(place: &Backend, file: &str) -> Vec<String> {
    fs::read_to_string(place.path(file)).unwrap_or_default().lines().map(str::to_owned).collect()
}

/// Watches with these options. Its output is in the files `printed` and `reported`.
fn watch(place: &Backend, options: &str) -> Process {
    place.shell(&format!("exec \"$IQ\" tasks watch --refresh 100ms {options} > printed 2> reported"))
}

fn wait_for(place: &Backend, file: &str, expected: &[&str]) {
    wait_until(&format!("{file} has {expected:?}"), || lines(place, file).len() >= expected.len());
    assert_eq!(lines(place, file), expected);
}

#[test]
fn a_command_runs_when_a_condition_becomes_true() {
    let place = Backend::sqlite();
    place.ok(&["add", "0"]);
    place.ok(&["work", "--until-empty", "--", "true"]);
    let command = "cat >> status; echo $INTERVAL_QUEUE_ALERT_QUEUE $INTERVAL_QUEUE_ALERT \
                   $INTERVAL_QUEUE_ALERT_VALUE >> alerts; echo sent; echo note >&2";
    let _watch = watch(&place, &format!("--alert 'ready>0' --alert 'ready = 0' -- sh -c '{command}'"));
    let (none, some) = ("mail ready = 0 0", "mail ready > 0 1");
    wait_for(&place, "alerts", &[none]);
    place.ok(&["add", "1"]);
    wait_for(&place, "alerts", &[none, some]);
    place.ok(&["work", "--until-empty", "--", "true"]);
    wait_for(&place, "alerts", &[none, some, none]);
    place.ok(&["add", "2"]);
    wait_for(&place, "alerts", &[none, some, none, some]);
    wait_for(&place, "printed", &["sent"; 4]);
    wait_for(&place, "reported", &["note"; 4]);
    let validator = closed(&place);
    let statuses = lines(&place, "status");
    let statuses = statuses.iter().map(|line| serde_json::from_str::<Value>(line).unwrap());
    statuses.clone().for_each(|status| check(&validator, &status));
    assert_eq!(statuses.map(|status| status["counts"]["ready"].clone()).collect::<Vec<_>>(), [0, 1, 0, 1]);
}

#[test]
fn without_a_command_each_change_is_a_line() {
    let place = Backend::sqlite();
    place.ok(&["add", "0"]);
    let _watch = watch(&place, "--alert 'ready > 0' --alert paused");
    wait_for(&place, "printed", &["mail: ready > 0: 1"]);
    place.ok(&["pause"]);
    wait_for(&place, "printed", &["mail: ready > 0: 1", "mail: paused: true"]);
    place.ok(&["resume"]);
    place.ok(&["tasks", "cancel", "--all"]);
    wait_until("both are over", || lines(&place, "printed").len() == 4);
    let mut over = lines(&place, "printed").split_off(2);
    over.sort();
    assert_eq!(over, ["mail: paused is over", "mail: ready > 0 is over"]);
    assert_eq!(lines(&place, "reported"), [""; 0]);
}

#[test]
fn alerts_are_repeated_only_with_every() {
    let place = Backend::sqlite();
    place.ok(&["add", "0"]);
    let every = watch(&place, "--every 150ms --alert 'ready > 0'");
    wait_until("it is repeated", || lines(&place, "printed").len() >= 3);
    assert!(lines(&place, "printed").iter().all(|line| line == "mail: ready > 0: 1"));
    drop(every);
    fs::remove_file(place.path("printed")).unwrap();
    // `left` changes a second after `ready` was found true, in ten checks.
    let _watch = watch(&place, "--alert 'ready > 0' --alert 'left > 1'");
    wait_for(&place, "printed", &["mail: ready > 0: 1"]);
    std::thread::sleep(std::time::Duration::from_secs(1));
    place.ok(&["add", "1"]);
    wait_for(&place, "printed", &["mail: ready > 0: 1", "mail: left > 1: 2"]);
}

#[test]
fn the_exit_code_of_once_reports_an_alert() {
    let place = Backend::sqlite();
    let once = |options: &[&str]| {
        let output = place.run(&[&["tasks", "watch", "--once"], options].concat());
        (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
    };
    assert_eq!(once(&["--alert", "ready > 0"]).0, 66);
    place.ok(&["add", "0"]);
    assert_eq!(once(&["--alert", "ready > 1", "--alert", "paused"]), (0, String::new(), String::new()));
    let (code, printed, reported) =
        once(&["--alert", "ready > 1", "--alert", "workers < 1", "--alert", "unserved > 0"]);
    assert_eq!((code, printed.as_str()), (1, "mail: workers < 1: 0\nmail: unserved > 0: 1\n"));
    assert!(reported.contains("2 of 3 conditions hold"), "{reported}");
    let (code, printed, reported) = once(&["--alert", "ready > 0", "--", "sh", "-c", "jq .left; exit 3"]);
    assert_eq!((code, printed.as_str()), (1, "1\n"));
    assert!(reported.contains("CMD failed for alert ready > 0: exit code 3\n"), "{reported}");
    // The port of a listener that is gone.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("redis://127.0.0.1:{port}");
    assert_eq!(once(&["--store", &url, "--alert", "ready > 0"]).0, 69);
    let both = ["--store", &url, "--alert", "ready > 0", "--alert", "unreachable"];
    let (code, printed, reported) = once(&both);
    assert!(code == 1 && printed.starts_with("mail: unreachable: redis at "), "{printed}");
    assert!(reported.contains("1 of 2 conditions hold"), "{reported}");
    let command = ["--", "sh", "-c", "cat; echo $INTERVAL_QUEUE_ALERT_VALUE"];
    let (_, printed, _) = once(&[&both[..], &command].concat());
    assert!(printed.starts_with("null\nredis at "), "{printed}");
}

#[test]
fn a_hanging_command_is_ended_with_its_group() {
    let place = Backend::sqlite();
    place.ok(&["add", "0"]);
    let hangs = "-- sh -c 'sleep 1000 & echo $! >> ids; echo $$ >> ids; sleep 1000'";
    let alerts = "--alert 'ready > 0' --alert 'left > 0'";
    let first = watch(&place, &format!("--timeout 300ms {alerts} {hangs}"));
    wait_until("the second alert is sent", || lines(&place, "ids").len() == 4);
    let are_alive = || lines(&place, "ids").iter().any(|id| is_alive(id.parse().unwrap()));
    wait_until("both commands are ended", || !are_alive() && lines(&place, "reported").len() == 2);
    assert!(lines(&place, "reported")[1].ends_with("CMD failed for alert left > 0: timed out"));
    drop(first);
    fs::remove_file(place.path("ids")).unwrap();
    let killed = watch(&place, &format!("--timeout 1day --alert 'ready > 0' {hangs}"));
    wait_until("the command runs", || lines(&place, "ids").len() == 2);
    killed.signal(Signal::KILL);
    wait_until("the command is ended", || !are_alive());
}

#[test]
fn an_outage_is_reported_and_leaves_conditions_as_they_are() {
    let mut place = Backend::directory();
    place.ok(&["add", "0"]);
    let _watch = watch(&place, "--alert 'ready > 0' --alert 'workers < 1' --alert unreachable");
    let begin = ["mail: ready > 0: 1", "mail: workers < 1: 0"];
    wait_for(&place, "printed", &begin);
    place.take_away();
    wait_until("it is noticed", || lines(&place, "printed").len() == 3);
    assert!(lines(&place, "printed")[2].starts_with("mail: unreachable: "), "{:?}", lines(&place, "printed"));
    place.bring_back();
    wait_until("it is over", || lines(&place, "printed").len() == 4);
    assert_eq!(lines(&place, "printed")[3], "mail: unreachable is over");
    let reported = lines(&place, "reported");
    assert!(reported.len() == 2 && reported[1].contains("answers again"), "{reported:?}");
}

#[test]
fn invalid_conditions_and_commands_are_rejected() {
    let place = Backend::sqlite();
    for (args, code, says) in [
        (&["--alert", "faild > 1"][..], 64, "\"faild\" is no condition: give added, waiting"),
        (&["--alert", "failed"], 64, "failed has no comparison: write for example 'failed > 10', in quotes"),
        (&["--alert", "oldest > 300"], 64, "300 has no unit"),
        (&[], 64, "--alert <CONDITION>"),
        (&["--alert", "paused", "--refresh", "1ms"], 64, "1ms is out of range: give 100ms to 1day"),
        (&["--alert", "paused", "--once", "--every", "1h"], 64, "cannot be used with"),
        (&["--alert", "paused", "--timeout", "2days"], 64, "2days is out of range: give up to 1day"),
        (&["--alert", "paused", "no-such-program"], 127, "\"no-such-program\" not found"),
        (&["--alert", "paused"], 66, "has no tasks in this store"),
    ] {
        let output = place.run(&[&["tasks", "watch"], args].concat());
        assert_eq!(output.status.code(), Some(code), "{args:?}: {output:?}");
        assert!(text(&output.stderr).contains(says), "{args:?}: {output:?}");
    }
}
