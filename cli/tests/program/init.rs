//! The program as process 1 of a container, which gets no signal that it does not handle.

use std::{fs, net::TcpListener, process::Stdio};

use rustix::process::{Signal, kill_process};

use crate::{
    place_tests::Backend,
    process::{Process, pid, wait_until},
};

/// Whether this user may make namespaces.
fn is_possible(place: &Backend) -> bool {
    let output = place.program("unshare").args(["-pf", "--mount-proc", "true"]).output();
    let is_possible = output.is_ok_and(|output| output.status.success());
    if !is_possible {
        eprintln!("skipped: this user may not make a namespace of processes");
    }
    is_possible
}

/// Starts the program as process 1, with an input that stays open. Returns `unshare`, which ends as the program does.
fn start(place: &Backend, args: &[&str]) -> Process {
    let mut command = place.program("unshare");
    command.args(["-pf", "--mount-proc", env!("CARGO_BIN_EXE_interval-queue")]).args(args);
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    Process::adopt(child.unwrap())
}

/// Sends the signal to the program until it has ended: before it handles signals it gets none.
fn end(mut unshare: Process, signal: Signal) -> Option<i32> {
    let id = unshare.id();
    let children = format!("/proc/{id}/task/{id}/children");
    wait_until("process 1 has ended", || {
        let children = fs::read_to_string(&children).unwrap_or_default();
        for child in children.split_whitespace() {
            // It may have just ended.
            let _ = kill_process(pid(child.parse().unwrap()), signal);
        }
        unshare.ended().is_some()
    });
    unshare.finish().status.code()
}

#[test]
fn each_command_ends_by_signals_as_process_1() {
    let place = Backend::sqlite();
    if !is_possible(&place) {
        return;
    }
    place.ok(&["run", "--every", "1h", "--", "true"]);
    let task = place.ok(&["add", "--kind", "other", "1"]);
    // It takes connections and answers nothing.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = format!("redis://{}", silent.local_addr().unwrap());
    let commands: [&[&str]; 8] = [
        &["work", "--", "cat"],
        &["run", "--", "true"],
        &["each", "--", "true"],
        &["turns"],
        &["tasks", "follow"],
        &["tasks", "wait", task.trim()],
        &["add", "-"],
        &["status", "--store", &silent],
    ];
    for args in commands {
        for (signal, code) in [(Signal::TERM, 143), (Signal::INT, 130)] {
            assert_eq!(end(start(&place, args), signal), Some(code), "{args:?}, {signal:?}");
        }
    }
}

#[test]
fn a_command_that_a_signal_killed_is_reported_by_process_1() {
    let place = Backend::sqlite();
    if !is_possible(&place) {
        return;
    }
    let kill = ["run", "--every", "1ms", "--max-running", "1", "--", "sh", "-c", "kill -TERM $$"];
    assert_eq!(start(&place, &kill).finish().status.code(), Some(143));
}
