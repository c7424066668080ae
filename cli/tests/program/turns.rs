//! `turns`: programs that pace themselves over a pipe.

use std::{
    collections::BTreeSet,
    io::{BufRead, BufReader, Write},
    os::unix::process::ExitStatusExt,
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::Duration,
};

use rustix::process::Signal;

use crate::{
    place_tests::{Backend, on_each_state},
    process::{Process, Stopwatch, text, wait_until},
};

on_each_state!(a_line_asks_for_a_turn_and_its_slot_prints_one, a_request_taken_back_leaves_no_ticket);

/// `turns` with both pipes open.
struct Turns {
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    process: Process,
}

impl Turns {
    fn start(place: &Backend, options: &[&str]) -> Self {
        Self::of(place.command(&["turns"]).args(options))
    }

    fn of(command: &mut Command) -> Self {
        let mut child: Child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let stdin = child.stdin.take().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Self { stdin, stdout, process: Process::adopt(child) }
    }

    fn ask(&mut self, requests: &str) {
        self.stdin.write_all(requests.as_bytes()).unwrap();
    }

    /// The next answer; empty at the end.
    fn answer(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        line
    }
}

fn nobody_waits(place: &Backend) {
    wait_until("nothing is left", || place.status()["shards"].as_array().unwrap().is_empty());
}

fn a_line_asks_for_a_turn_and_its_slot_prints_one(place: &mut Backend) {
    let mut turns = Turns::start(place, &["--every", "20ms"]);
    turns.ask("turn\n\nturn 3\n");
    let mut answers = [turns.answer(), turns.answer(), turns.answer()];
    // A process that asks for nothing is no part of the queue.
    nobody_waits(place);
    turns.ask("turn\nturn");
    drop(turns.stdin);
    let mut rest = String::new();
    std::io::Read::read_to_string(&mut turns.stdout, &mut rest).unwrap();
    assert_eq!(rest, "turn 4\nturn 5\n");
    let output = turns.process.finish();
    let printed = text(&output.stderr);
    assert!(
        output.status.success() && (printed.is_empty() || printed.contains(" unreachable: ")),
        "{printed}"
    );
    // A store that is too slow refuses a ticket, whose request comes after later ones. A host that stalls
    // for longer than an interval wakes two turns at once.
    answers.sort();
    assert_eq!(answers, ["turn 1\n", "turn 2\n", "turn 3\n"], "{printed}");
    let status = place.status();
    assert_eq!((&status["ticket"], &status["current"]), (&5.into(), &5.into()));
}

fn a_request_taken_back_leaves_no_ticket(place: &mut Backend) {
    place.ok(&["run", "--every", "100ms", "--", "true"]);
    place.ok(&["hold", "1h"]);
    let mut turns = Turns::start(place, &[]);
    turns.ask(&"turn\n".repeat(20));
    wait_until("it waits", || place.waiting() == 1);
    assert!(place.status()["outstanding"].as_u64().unwrap() <= 6, "places of half a second and a burst");
    turns.ask(&"back\n".repeat(19));
    for _ in 0..19 {
        assert_eq!(turns.answer(), "back\n");
    }
    place.ok(&["reset"]);
    assert!(turns.answer().starts_with("turn "));
    // The one that is left; then nothing waits, and the turn that came is given back.
    turns.ask("back\nback\nturn\n");
    assert!(turns.answer().starts_with("turn "));
    nobody_waits(place);
    drop(turns.stdin);
    assert!(turns.process.finish().status.success());
}

#[test]
fn with_a_limit_a_turn_counts_as_running_until_done() {
    let place = Backend::file();
    let mut turns = Turns::start(&place, &["--every", "1ms", "--max-running", "2"]);
    turns.ask("turn\nturn\nturn\nturn\n");
    assert_eq!([turns.answer(), turns.answer()], ["turn 1\n", "turn 2\n"]);
    wait_until("two run, and that is why the third waits", || {
        let status = place.status();
        (&status["running"], &status["status"]) == (&2.into(), &"at_max_running".into())
    });
    // Given back is as good as done; without a limit both mean nothing.
    turns.ask("done\n");
    assert_eq!(turns.answer(), "turn 3\n");
    turns.ask("back\n");
    assert_eq!(turns.answer(), "back\n");
    turns.ask("back\nturn\n");
    assert_eq!(turns.answer(), "turn 5\n");
    drop(turns);
    place.ok(&["set", "--max-running", "none"]);
}

#[test]
fn an_ended_turns_process_leaves_no_ticket() {
    let place = Backend::file();
    place.ok(&["run", "--every", "10ms", "--", "true"]);
    place.ok(&["hold", "1h"]);
    let waiting = || {
        let mut turns = Turns::start(&place, &[]);
        turns.ask("turn\nturn\n");
        wait_until("it waits", || place.waiting() == 1);
        turns
    };
    // By a signal.
    let turns = waiting();
    turns.process.signal(Signal::TERM);
    assert_eq!(turns.process.finish().status.signal(), Some(15));
    nobody_waits(&place);
    // With the program that asked.
    let Turns { stdin, stdout, process } = waiting();
    drop((stdin, stdout));
    assert_eq!(process.finish().status.code(), Some(0));
    nobody_waits(&place);
    // By what is no request.
    let mut turns = waiting();
    turns.ask("go\n");
    let output = turns.process.finish();
    assert_eq!(output.status.code(), Some(64));
    assert!(text(&output.stderr).contains("\"go\" is no request: write turn"), "{output:?}");
    nobody_waits(&place);
    // As one who is read by nobody, which the first turn tells.
    let Turns { stdin: _stdin, stdout, process } = waiting();
    drop(stdout);
    place.ok(&["reset"]);
    assert_eq!(process.finish().status.signal(), Some(13));
    nobody_waits(&place);
}

#[test]
fn turns_that_nobody_reads_keep_no_signal_waiting() {
    let place = Backend::file();
    place.ok(&["run", "--every", "1us", "true"]);
    let mut turns = Turns::start(&place, &[]);
    // More answers than a pipe holds.
    turns.ask(&"\n".repeat(20_000));
    let taken = || place.status()["current"].as_u64().unwrap();
    let mut before = 0;
    wait_until("the pipe is full", || {
        let now = taken();
        std::mem::replace(&mut before, now) == now && now > 1_000
    });
    turns.process.signal(Signal::TERM);
    wait_until("it ends", || turns.process.ended().is_some());
    assert_eq!(turns.process.ended().unwrap().signal(), Some(15));
}

#[test]
#[ignore = "needs python3 and node: scripts/test runs it"]
fn programs_in_python_and_node_share_a_pace() {
    let place = Backend::file();
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples");
    let program = Path::new(env!("CARGO_BIN_EXE_interval-queue")).parent().unwrap().to_owned();
    let paths = std::env::var("PATH").unwrap();
    let elapsed = Stopwatch::start();
    let of = |language: &str, script: &str| {
        let mut command = place.program(language);
        command.arg(examples.join(script)).arg("6").env("PATH", format!("{}:{paths}", program.display()));
        Process::spawn(&mut command)
    };
    let all: Vec<_> = (0..2)
        .flat_map(|_| [of("python3", "python/paced_calls.py"), of("node", "node/paced_calls.js")])
        .collect();
    let mut tickets = BTreeSet::new();
    for process in all {
        let output = process.finish();
        assert!(output.status.success(), "{output:?}");
        let said = text(&output.stdout);
        assert_eq!(said.lines().count(), 6, "{said}");
        let of_line = |line: &str| line.split(' ').nth(1).unwrap().parse::<u64>().unwrap();
        tickets.extend(said.lines().map(of_line));
    }
    // No turn twice and none lost, and the last slot was as late as the pace says.
    assert_eq!(tickets, (1..=24).collect());
    let status = place.status();
    assert_eq!((&status["ticket"], &status["current"]), (&24.into(), &24.into()));
    assert!(elapsed.elapsed() >= Duration::from_millis(23 * 200), "{:?}", elapsed.elapsed());
    // What goes wrong reaches them.
    place.ok(&["set", "--every", "1h"]);
    std::fs::write(place.state_file(), "[]").unwrap();
    for (language, script) in [("python3", "python/paced_calls.py"), ("node", "node/paced_calls.js")] {
        let output = of(language, script).finish();
        let said = text(&output.stderr);
        assert!(!output.status.success() && said.contains("interval-queue has ended"), "{said}");
        assert!(said.contains("is not a state file"), "{said}");
    }
}
