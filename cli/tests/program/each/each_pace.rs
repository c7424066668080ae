//! All who start commands for items keep one pace with each other, whoever dies.

use std::time::Duration;

use rustix::process::Signal;

use super::{each, lines, open_ended, start, tell};
use crate::{
    place_tests::{Backend, on_each_state},
    process::{Process, Stopwatch, text, wait_until},
};

on_each_state!(three_share_one_pace, one_goes_on_when_another_is_killed, others_get_their_turns_in_between);

const INTERVAL: Duration = Duration::from_millis(50);

fn numbers(count: usize) -> String {
    (0..count).map(|n| format!("{n}\n")).collect()
}

fn three_share_one_pace(place: &mut Backend) {
    const ITEMS: usize = 20;
    place.ok(&["run", "--every", "50ms", "--", "true"]);
    place.ok(&["pause"]);
    let script = |name| format!("echo {name} >> starts");
    let input = numbers(ITEMS);
    let processes: Vec<_> = ["a", "b", "c"]
        .map(|name| start(place, input.as_bytes(), &["--", "sh", "-c", &script(name)]))
        .into_iter()
        .collect();
    wait_until("all wait", || place.waiting() == 3);
    let clock = Stopwatch::start();
    place.ok(&["resume"]);
    for process in processes {
        let output = process.finish();
        assert!(output.status.success(), "{output:?}");
        assert!(text(&output.stderr).contains("20 items: 20 done;"), "{output:?}");
    }
    // The first slot came after the clock was started, the last one before it was read.
    assert!(clock.elapsed() >= INTERVAL * u32::try_from(3 * ITEMS - 1).unwrap());
    let starts = lines(place, "starts");
    assert_eq!(starts.len(), 3 * ITEMS);
    // None had to wait until another one was done.
    let first = ["a", "b", "c"].map(|name| starts.iter().position(|start| start == name).unwrap());
    let last = ["a", "b", "c"].map(|name| starts.iter().rposition(|start| start == name).unwrap());
    assert!(first.iter().max() < last.iter().min(), "{starts:?}");
}

fn one_goes_on_when_another_is_killed(place: &mut Backend) {
    place.ok(&["run", "--every", "20ms", "--", "true"]);
    place.ok(&["pause"]);
    let input = numbers(10);
    let killed = start(place, input.as_bytes(), &["--", "true"]);
    wait_until("the first waits", || place.waiting() == 1);
    let other = start(place, input.as_bytes(), &["-k", "--", "echo"]);
    wait_until("both wait", || place.waiting() == 2);
    killed.signal(Signal::KILL);
    place.ok(&["resume"]);
    let output = other.finish();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(text(&output.stdout), input);
}

/// Whoever comes has to wait for the places that are held, not for the whole list.
fn others_get_their_turns_in_between(place: &mut Backend) {
    place.ok(&["run", "--every", "600ms", "--", "true"]);
    let list = start(place, numbers(1000).as_bytes(), &["--", "true"]);
    wait_until("it waits", || place.waiting() == 1);
    for _ in 0..3 {
        assert!(place.status()["outstanding"].as_u64().unwrap() <= 1);
        place.ok(&["run", "--", "true"]);
    }
    list.signal(Signal::TERM);
    let output = list.finish();
    assert!(text(&output.stderr).contains("not started"), "{output:?}");
}

#[test]
fn no_more_run_at_once_than_jobs_may() {
    let place = Backend::file();
    std::fs::create_dir(place.path("running")).unwrap();
    let script = "touch running/$0; ls running | wc -l >> counts; sleep 0.2; rm running/$0";
    let output =
        each(&place, numbers(8).as_bytes(), &["--every", "1ms", "--jobs", "2", "--", "sh", "-c", script]);
    assert!(output.status.success(), "{output:?}");
    let counts = lines(&place, "counts");
    assert_eq!(counts.len(), 8);
    assert!(counts.iter().all(|count| count.trim().parse::<u32>().unwrap() <= 2), "{counts:?}");
    assert_eq!(place.status()["shards"], serde_json::json!([]));
}

#[test]
fn no_more_run_at_once_than_open_files_allow() {
    let place = Backend::file();
    place.ok(&["run", "--every", "1ms", "--", "true"]);
    let script = "ulimit -n 100; seq 60 | \"$IQ\" each --jobs 60 -- sh -c 'sleep 0.5'";
    let output = place.shell(script).finish();
    assert!(output.status.success(), "{output:?}");
    assert!(text(&output.stderr).contains("--jobs 60 is more than 100 open files allow"), "{output:?}");
    assert!(text(&output.stderr).contains("60 items: 60 done"), "{output:?}");
}

#[test]
fn the_running_limit_of_the_queue_holds() {
    let place = Backend::file();
    std::fs::create_dir(place.path("running")).unwrap();
    let script = "touch running/$0; ls running | wc -l >> counts; sleep 0.2; rm running/$0";
    let output =
        each(&place, b"a\nb\nc\n", &["--every", "1ms", "--max-running", "1", "--", "sh", "-c", script]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(lines(&place, "counts").join(" ").split_whitespace().collect::<Vec<_>>(), ["1", "1", "1"]);
}

#[test]
fn items_are_started_as_they_come() {
    let place = Backend::file();
    let args = ["--every", "1ms", "--", "sh", "-c", "echo \"$0\" >> starts"];
    let mut child = open_ended(&place, &args);
    for (count, line) in [(1, &b"one\n"[..]), (2, b"two\nthr"), (4, b"ee\nfour\n")] {
        tell(&mut child, line);
        wait_until("they are started", || lines(&place, "starts").len() == count);
        assert_eq!(place.status()["shards"], serde_json::json!([]), "nothing waits, nothing is left");
    }
    drop(child.stdin.take());
    assert_eq!(Process::adopt(child).finish().status.code(), Some(0));
    let mut starts = lines(&place, "starts");
    starts.sort_unstable();
    assert_eq!(starts, ["four", "one", "three", "two"]);
}

#[test]
fn an_endless_input_is_read_a_little_ahead_only() {
    let place = Backend::file();
    place.ok(&["run", "--every", "1h", "--", "true"]);
    let mut child = open_ended(&place, &["--", "true"]);
    let stdin = child.stdin.take().unwrap();
    rustix::fs::fcntl_setfl(&stdin, rustix::fs::OFlags::NONBLOCK).unwrap();
    let mut accepted = 0;
    let clock = Stopwatch::start();
    while clock.elapsed() < Duration::from_secs(2) {
        match rustix::io::write(&stdin, &b"item\n".repeat(1000)) {
            Ok(count) => accepted += count,
            Err(_) => std::thread::sleep(Duration::from_millis(10)),
        }
    }
    let mut process = Process::adopt(child);
    assert_eq!(process.ended(), None);
    assert!(accepted < 2_000_000, "{accepted}");
    process.signal(Signal::TERM);
    process.finish();
}

#[test]
fn a_pause_is_told_and_waited_out() {
    let place = Backend::file();
    place.ok(&["run", "--every", "1ms", "--", "true"]);
    place.ok(&["pause"]);
    let process = start(&place, b"a\nb\n", &["-k", "--", "echo"]);
    wait_until("it waits", || place.waiting() == 1);
    place.ok(&["resume"]);
    let output = process.finish();
    assert_eq!(text(&output.stdout), "a\nb\n");
    assert!(text(&output.stderr).contains("the queue is paused; waiting\n"), "{output:?}");
    assert!(text(&output.stderr).contains("the queue is resumed\n"), "{output:?}");
}
