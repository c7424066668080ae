//! What it leaves behind: children that hold its output, and daemons.
#![cfg(target_os = "linux")]

use rustix::process::Signal;

use super::{AS_PROMISED, bad, left_of, misbehave, tell};
use crate::{
    place_tests::Backend,
    process::{is_alive, wait_until},
    work::{add, lines, task, worker, written_id},
};

/// Starts processes in the background, and says when they are there.
const DAEMONS: [(&str, &str); 8] = [
    ("a child that holds its output", "sleep 1000 &"),
    ("a child in a group of its own", "set -m; sleep 1000 & set +m"),
    ("a daemon", "setsid sh -c ': > there; exec sleep 1000' &"),
    (
        "a daemon that listens to nothing",
        "setsid sh -c 'trap \"\" TERM HUP; : > there; sleep 1000; sleep 1000' &",
    ),
    ("a hundred daemons", "for n in $(seq 100); do setsid sleep 1000 & done"),
    (
        "a daemon that starts another one when it is to end",
        "echo 'trap \"setsid sh again & exit\" TERM; : > there; while :; do sleep 0.05; done' > again; setsid sh again &",
    ),
    ("a daemon with children", "setsid sh -c 'setsid sleep 1000 & sleep 1000 & : > there; wait' &"),
    (
        "a daemon of a daemon, without output",
        "(setsid sh -c '(setsid sh -c \": > there; exec sleep 1000\" &) &' > /dev/null 2>&1 < /dev/null &)",
    ),
];

#[test]
fn processes_left_running_are_ended_with_the_command() {
    for (what, start) in DAEMONS {
        let waits = if start.contains("there") { "while ! [ -e there ]; do sleep 0.05; done" } else { "" };
        let task = misbehave(&[], &format!("{start}\n{waits}\necho 1"));
        assert_eq!(task["result"], 1, "{what}: {task:#}");
    }
    for end in ["exit 65", "kill -KILL $$"] {
        let task =
            misbehave(&[], &format!("{}\nwhile ! [ -e there ]; do sleep 0.05; done\n{end}", DAEMONS[2].1));
        assert_eq!(task["state"], "failed", "{end}: {task:#}");
    }
    tell(
        "leaves children and daemons running",
        DAEMONS.len() + 2,
        "they are ended before its task ends",
        AS_PROMISED,
    );
}

/// Leaves its group, and tells if an earlier run of the task goes on.
const DAEMON: &str = "
    setsid sh -c '
        for other in $(cat ids 2> /dev/null); do kill -0 $other 2> /dev/null && echo $other >> beside; done
        echo $$ >> ids; while :; do sleep 0.05; done' &
    while ! [ -e stop ]; do sleep 0.05; done";

#[test]
fn a_daemon_ends_with_its_worker_before_its_task_runs_again() {
    for signal in [Signal::KILL, Signal::STOP] {
        let place = Backend::sqlite();
        let id = add(&place, &["--key", "bad", "1"]);
        let first = worker(&place, &["--lease", "2s"], &bad(DAEMON));
        let daemon = written_id(&place, "ids");
        first.signal(signal);
        wait_until("the daemon has ended", || !is_alive(daemon));
        assert_eq!(task(&place, &id)["state"], "leased", "nobody else has it yet");
        let second = worker(&place, &["--lease", "2s"], &bad(DAEMON));
        wait_until("it runs again", || lines(&place, "ids").len() > 1);
        std::fs::write(place.path("stop"), "").unwrap();
        wait_until("it is done", || task(&place, &id)["state"] == "done");
        assert_eq!(lines(&place, "beside"), [""; 0]);
        assert_ne!(task(&place, &id)["failures"], 0);
        assert_eq!(left_of(&id), [0; 0]);
        drop((first, second));
    }
    tell(
        "has a daemon when its worker is killed or stopped",
        2,
        "it ends before its task runs again",
        "each time so; 0 runs beside another",
    );
}
