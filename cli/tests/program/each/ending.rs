//! What is told, and kept, when not all is done.

use std::{fs, os::unix::process::ExitStatusExt};

use rustix::process::Signal;

use super::{each, lines, start};
use crate::{
    place_tests::{Backend, on_each_state},
    process::{text, wait_until},
};

on_each_state!(an_interrupt_lists_the_items_that_are_left);

fn an_interrupt_lists_the_items_that_are_left(place: &mut Backend) {
    place.ok(&["run", "--every", "1h", "--", "true"]);
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let input = b"first\nsecond\nthird item";
        let process = start(place, input, &["--failed", "left", "--", "echo", "started"]);
        wait_until("it waits", || place.waiting() == 1);
        process.signal(signal);
        let output = process.finish();
        assert_eq!(output.status.signal(), Some(signal.as_raw()), "{output:?}");
        assert_eq!(text(&output.stdout), "");
        assert_eq!(lines(place, "left"), ["first", "second", "third item"], "{output:?}");
        assert!(text(&output.stderr).contains("3 items: 0 done, 3 not started;"), "{output:?}");
        assert_eq!(place.status()["shards"], serde_json::json!([]));
    }
}

#[test]
fn running_commands_are_waited_for_and_hear_what_was_sent() {
    let place = Backend::file();
    let script = "trap 'sleep 0.3; echo ended $0; exit 0' TERM; echo > ready; while :; do sleep 0.05; done";
    let args = ["--every", "1ms", "--jobs", "1", "--", "sh", "-c", script];
    let process = start(&place, b"a\nb\n", &args);
    wait_until("the first runs", || place.path("ready").exists());
    process.signal(Signal::TERM);
    let output = process.finish();
    assert_eq!(output.status.signal(), Some(Signal::TERM.as_raw()), "{output:?}");
    assert_eq!(text(&output.stdout), "ended a\n");
    assert!(text(&output.stderr).contains("2 items: 1 done, 1 not started"), "{output:?}");
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let place = Backend::file();
    let script = "trap '' TERM; echo $$ > id; for i in $(seq 600); do sleep 0.1; done";
    let process = start(&place, b"a\nb\n", &["--every", "1h", "--failed", "left", "--", "sh", "-c", script]);
    wait_until("the first runs", || lines(&place, "id").len() == 1);
    let mut process = process;
    process.signal(Signal::TERM);
    std::thread::sleep(std::time::Duration::from_millis(500));
    assert_eq!(process.ended(), None);
    process.signal(Signal::TERM);
    let output = process.finish();
    assert_eq!(output.status.signal(), Some(Signal::TERM.as_raw()), "{output:?}");
    assert_eq!(lines(&place, "left"), ["a", "b"]);
    assert!(text(&output.stderr).contains("1 left running, 1 not started"), "{output:?}");
    assert!(text(&output.stderr).contains("also items left running, are in left"), "{output:?}");
    let id = lines(&place, "id")[0].parse().unwrap();
    rustix::process::kill_process(crate::process::pid(id), Signal::KILL).unwrap();
}

#[test]
fn the_rest_of_a_file_is_kept_to_its_end() {
    let place = Backend::file();
    place.ok(&["run", "--every", "1h", "--", "true"]);
    let input: String = (0..200_000).map(|n| format!("item {n}\n")).collect();
    let process = start(&place, input.as_bytes(), &["--failed", "left", "--", "true"]);
    wait_until("it waits", || place.waiting() == 1);
    process.signal(Signal::INT);
    process.finish();
    assert!(fs::read_to_string(place.path("left")).unwrap() == input);
}

#[test]
fn failed_items_are_printed_and_written_to_the_file() {
    let place = Backend::file();
    let input = (0..15).map(|n| format!("{n} \x1b[31m\0")).collect::<String>();
    let script = "case $0 in 3*) exit 0;; 4*) kill -KILL $$;; *) exit 9;; esac";
    let args = ["-0", "--every", "1ms", "--jobs", "1", "--failed", "left", "--", "sh", "-c", script];
    let output = each(&place, input.as_bytes(), &args);
    assert_eq!(output.status.code(), Some(123), "{output:?}");
    let told = text(&output.stderr);
    assert!(told.contains("15 items: 1 done, 14 failed;"), "{told}");
    assert!(told.contains("\"4 \\u{1b}[31m\": killed by SIGKILL"), "{told}");
    assert!(told.contains("exit code 9"), "{told}");
    assert!(told.contains("and 4 more"), "{told}");
    assert!(!told.contains('\x1b'), "{told}");
    let left = fs::read(place.path("left")).unwrap();
    assert_eq!(text(&left), input.replace("\x003 \x1b[31m\0", "\0"));
    // What is left makes the next input.
    let output = each(&place, &left, &["-0", "--failed", "left", "--", "true"]);
    assert!(output.status.success(), "{output:?}");
    assert!(fs::read(place.path("left")).unwrap().is_empty());
}

#[test]
fn the_first_failure_can_end_it() {
    let place = Backend::file();
    let args = ["--fail-fast", "--jobs", "1", "--every", "1ms", "--", "sh", "-c", "echo $0; [ $0 != b ]"];
    let output = each(&place, b"a\nb\nc\nd\n", &args);
    assert_eq!(output.status.code(), Some(123), "{output:?}");
    assert_eq!(text(&output.stdout), "a\nb\n");
    assert!(text(&output.stderr).contains("4 items: 1 done, 1 failed, 2 not started"), "{output:?}");
}

/// Each attempt takes a slot of its own, behind the items that came meanwhile.
#[test]
fn a_failed_command_is_retried_in_a_new_slot() {
    let place = Backend::file();
    let script = "echo $0 >> starts; [ $0 != a ] || [ $(grep -c a starts) = 3 ]";
    let output = each(&place, b"a\nb\nc\n", &["--retry", "2", "--every", "20ms", "--", "sh", "-c", script]);
    assert!(output.status.success(), "{output:?}");
    // A busy machine may begin one command later than the next.
    let mut starts = lines(&place, "starts");
    starts.sort();
    assert_eq!(starts, ["a", "a", "a", "b", "c"]);
    // Five tickets for three items.
    assert_eq!(place.status()["ticket"], 5);
    let output = each(&place, b"a\n", &["--retry", "1", "--", "sh", "-c", "exit 3"]);
    assert_eq!(output.status.code(), Some(123), "{output:?}");
    assert!(text(&output.stderr).contains("1 item: 0 done, 1 failed, 1 retried"), "{output:?}");
}

#[test]
fn a_start_that_comes_too_late_is_given_up() {
    let place = Backend::file();
    let args = ["--every", "1h", "--start-within", "300ms", "--failed", "left", "--", "echo"];
    let output = each(&place, b"a\nb\nc\n", &args);
    assert_eq!(output.status.code(), Some(75), "{output:?}");
    assert_eq!(text(&output.stdout), "a\n");
    assert!(text(&output.stderr).contains("not started within 300ms"), "{output:?}");
    assert_eq!(lines(&place, "left"), ["b", "c"]);
}

#[test]
fn a_command_that_takes_too_long_has_failed() {
    let place = Backend::file();
    let args = ["--every", "1ms", "--timeout", "200ms", "--", "sh", "-c", "[ $0 = b ] || exec sleep 100"];
    let output = each(&place, b"a\nb\n", &args);
    assert_eq!(output.status.code(), Some(123), "{output:?}");
    assert!(text(&output.stderr).contains("2 items: 1 done, 1 failed"), "{output:?}");
    assert!(text(&output.stderr).contains("\"a\": timed out"), "{output:?}");
}

#[test]
fn an_item_that_is_no_argument_fails_and_the_others_go_on() {
    let place = Backend::file();
    let long = "x".repeat(2_200_000);
    let input = format!("1\n2\n3\n{long}\n4\n5\n6\n");
    let args = ["--every", "1ms", "--keep-order", "--failed", "left", "--", "echo"];
    let output = each(&place, input.as_bytes(), &args);
    assert_eq!(output.status.code(), Some(123), "{output:?}");
    assert_eq!(text(&output.stdout), "1\n2\n3\n4\n5\n6\n");
    let told = text(&output.stderr);
    assert!(told.contains("7 items: 6 done, 1 failed"), "{told}");
    assert!(told.contains("xxx…: 2,200,000 bytes, "), "{told}");
    assert!(told.len() < 1000, "{told}");
    assert!(lines(&place, "left") == [long]);
}

#[test]
fn an_unwritable_list_of_failed_items_is_reported() {
    let place = Backend::file();
    let args = ["--every", "1ms", "--fail-fast", "-j", "1", "--failed", "/dev/full", "--", "false"];
    let output = each(&place, b"a\nb\nc\n", &args);
    assert_eq!(output.status.code(), Some(74), "{output:?}");
    let told = text(&output.stderr);
    assert!(!told.contains("is in /dev/full"), "{told}");
    assert!(told.contains("cannot write /dev/full: "), "{told}");
    assert!(told.contains("3 items are not done, and /dev/full does not have all of them"), "{told}");
    assert!(told.contains("failed: \"a\"") && told.contains("not started: \"c\""), "{told}");
}

/// Damaged by a person, and put right again: an item that comes meanwhile is kept.
#[test]
fn a_damaged_state_is_waited_for() {
    let place = Backend::file();
    let stderr = place.path("stderr");
    let mut command = super::command(&place, &["--every", "10ms", "--keep-order", "--", "echo"]);
    command.stdin(std::process::Stdio::piped()).stderr(fs::File::create(&stderr).unwrap());
    let stdout = place.path("stdout");
    let mut child = command.stdout(fs::File::create(&stdout).unwrap()).spawn().unwrap();
    super::tell(&mut child, b"a\n");
    wait_until("the first is done", || lines(&place, "stdout") == ["a"]);
    let stored = fs::read(place.state_file()).unwrap();
    fs::write(place.state_file(), "no record").unwrap();
    super::tell(&mut child, b"b\nc\n");
    wait_until("it is told", || fs::read_to_string(&stderr).unwrap().contains("; waiting\n"));
    std::thread::sleep(std::time::Duration::from_secs(1));
    fs::write(place.state_file(), stored).unwrap();
    drop(child.stdin.take());
    let output = crate::process::Process::adopt(child).finish();
    let told = fs::read_to_string(&stderr).unwrap();
    assert!(output.status.success(), "{told}");
    assert_eq!(lines(&place, "stdout"), ["a", "b", "c"]);
    assert!(told.contains("3 items: 3 done"), "{told}");
    assert_eq!(told.matches("; waiting").count(), 1, "{told}");
}
