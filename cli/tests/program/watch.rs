//! `watch` on a real terminal: what it tells, what it leaves, and that it changes nothing.

use std::{fs, os::unix::process::ExitStatusExt, process::Command, thread::sleep, time::Duration};

use rustix::process::Signal;

use crate::{
    place_tests::{Backend, Left, on_each_state},
    process::{text, wait_until},
    pty::Terminal,
};

on_each_state!(
    it_tells_who_is_next_and_makes_no_shard,
    a_queue_is_paused_only_after_a_yes,
    an_outage_is_told_and_waited_out,
);

/// The program as it watches.
fn watch(place: &Backend, args: &[&str]) -> Command {
    let mut command = place.command(&["watch"]);
    command.args(args);
    command
}

/// The end of all drawing: the screen as it was, with its cursor.
const GIVEN_BACK: [&str; 2] = ["\u{1b}[?1049l", "\u{1b}[?25h"];

fn is_given_back(terminal: &Terminal) {
    wait_until("the terminal is given back", || has_given_back(terminal));
}

fn has_given_back(terminal: &Terminal) -> bool {
    let raw = terminal.raw();
    terminal.is_as_it_was()
        && GIVEN_BACK.iter().all(|sequence| raw.rfind(sequence) > raw.rfind("\u{1b}[?1049h"))
}

fn it_tells_who_is_next_and_makes_no_shard(place: &mut Backend) {
    place.ok(&["run", "--every", "1h", "--", "true"]);
    place.ok(&["run", "--queue", "post", "--every", "1s", "--", "true"]);
    let _waiting = place.spawn(&["run", "--label", "the second", "--", "true"]);
    wait_until("it waits", || place.waiting() == 1);
    let mut terminal = Terminal::start(100, 30, &mut watch(place, &[]));
    terminal.shows("NEXT");
    terminal.shows("waiting for ticket 2 of shard");
    terminal.shows("(the second)");
    terminal.shows("order of starts");
    terminal.shows("(1 of 2)");
    terminal.shows("1 per hour");
    assert!(!terminal.is_as_it_was(), "keys come one by one");
    assert_eq!(place.status()["shards"].as_array().unwrap().len(), 1, "only the one that waits");
    terminal.forget();
    terminal.key("j");
    terminal.shows("EMPTY");
    terminal.key("q");
    assert!(terminal.end().success());
    is_given_back(&terminal);
}

fn a_queue_is_paused_only_after_a_yes(place: &mut Backend) {
    place.ok(&["run", "--every", "10ms", "--", "true"]);
    let mut terminal = Terminal::start(80, 24, &mut watch(place, &["--queue", "mail"]));
    terminal.shows("EMPTY");
    terminal.key("p");
    terminal.shows("Pause mail?");
    terminal.key("n");
    terminal.key("y");
    terminal.forget();
    terminal.key("p");
    terminal.shows("Pause mail?");
    assert_eq!(place.status()["paused"], false, "a question changes nothing");
    terminal.key("y");
    terminal.shows("PAUSED");
    assert_eq!(place.status()["paused"], true);
    terminal.forget();
    terminal.key("p");
    terminal.shows("Resume mail?");
    terminal.key("y");
    terminal.shows("EMPTY");
    assert_eq!(place.status()["paused"], false);
    terminal.control_key("\u{3}", "it ends", Terminal::has_ended);
    assert!(terminal.end().success());
}

fn an_outage_is_told_and_waited_out(place: &mut Backend) {
    place.ok(&["run", "--every", "1s", "--", "true"]);
    let mut terminal = Terminal::start(100, 30, &mut watch(place, &["--queue", "mail"]));
    terminal.shows("EMPTY");
    place.take_away();
    if place.is_a_server() {
        terminal.shows("UNREACHABLE");
        terminal.shows("refused");
    } else {
        terminal.shows("UNREADABLE");
    }
    terminal.forget();
    let left = place.bring_back();
    terminal.shows(if left == Left::Everything { "EMPTY" } else { "NOT THERE" });
    if place.is_a_server() {
        terminal.shows("the store answers again, after");
    }
    match left {
        Left::Everything => place.ok(&["set", "--every", "1h"]),
        Left::Nothing => place.ok(&["run", "--every", "1h", "--", "true"]),
    };
    terminal.shows("every 1h");
    terminal.key("\u{1b}");
    assert!(terminal.end().success());
}

#[test]
fn without_a_terminal_it_points_to_status() {
    let place = Backend::file();
    let output = place.run(&["watch"]);
    assert_eq!(output.status.code(), Some(64), "{output:?}");
    assert!(output.stdout.is_empty());
    assert!(text(&output.stderr).contains("interval-queue status"), "{output:?}");
    assert!(place.files().is_empty());
}

#[test]
fn watching_stores_nothing() {
    let place = Backend::file();
    place.ok(&["run", "--every", "10ms", "--", "true"]);
    let (files, stored) = (place.files(), fs::read(place.state_file()).unwrap());
    let mut terminal = Terminal::start(80, 24, &mut watch(&place, &["--refresh", "20ms"]));
    terminal.shows("EMPTY");
    terminal.key("jkGg??p \u{1b}[A\u{1b}[B");
    sleep(Duration::from_millis(300));
    terminal.key("q");
    assert!(terminal.end().success());
    assert_eq!((place.files(), fs::read(place.state_file()).unwrap()), (files, stored));
}

#[test]
fn a_state_that_does_not_answer_yet_is_waited_for() {
    let place = Backend::file();
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    for url in [
        format!("redis://user:secret@127.0.0.1:{port}"),
        format!("postgres://user:secret@127.0.0.1:{port}/jobs"),
        format!("postgres:///jobs?host=127.0.0.1&port={port}&user=user&password=secret"),
    ] {
        let mut terminal = Terminal::start(100, 30, &mut watch(&place, &["--store", &url]));
        terminal.shows("UNREACHABLE");
        assert!(!terminal.text().contains("secret"), "{}", terminal.text());
        terminal.key("q");
        assert!(terminal.end().success());
    }
}

#[test]
fn signals_end_it_and_the_terminal_is_given_back() {
    let place = Backend::file();
    place.ok(&["run", "--every", "10ms", "--", "true"]);
    for signal in [Signal::TERM, Signal::HUP, Signal::INT] {
        let mut terminal = Terminal::start(80, 24, &mut watch(&place, &[]));
        terminal.shows("EMPTY");
        terminal.signal(signal);
        assert_eq!(terminal.end().signal(), Some(signal.as_raw()));
        is_given_back(&terminal);
    }
}

#[test]
fn a_stop_restores_the_terminal_until_continued() {
    let place = Backend::file();
    place.ok(&["run", "--every", "10ms", "--", "true"]);
    let mut terminal = Terminal::start(80, 24, &mut watch(&place, &[]));
    for stop in ["the signal", "the key"] {
        terminal.shows("EMPTY");
        match stop {
            "the key" => {
                terminal
                    .control_key("\u{1a}", "the terminal is given back", |terminal| has_given_back(terminal));
            }
            _ => terminal.signal(Signal::TSTP),
        }
        is_given_back(&terminal);
        terminal.forget();
        terminal.signal(Signal::CONT);
    }
    terminal.shows("EMPTY");
    terminal.key("q");
    assert!(terminal.end().success());
    is_given_back(&terminal);
}

#[test]
fn it_follows_the_size_of_the_terminal() {
    let place = Backend::file();
    place.ok(&["run", "--every", "1h", "--", "true"]);
    let _waiting = place.spawn(&["run", "--label", "second", "--", "true"]);
    wait_until("it waits", || place.waiting() == 1);
    let mut terminal = Terminal::start(20, 5, &mut watch(&place, &[]));
    terminal.shows("NEXT");
    terminal.shows("2 second");
    assert!(!terminal.text().contains("LEASE LEFT"));
    for (columns, rows) in [(1, 1), (200, 3), (3, 50), (0, 0), (120, 40)] {
        terminal.resize(columns, rows);
        sleep(Duration::from_millis(150));
    }
    terminal.shows("LEASE LEFT");
    terminal.key("q");
    assert!(terminal.end().success());
}

#[test]
fn no_color_has_no_colours_and_a_dumb_terminal_gets_lines() {
    let place = Backend::file();
    place.ok(&["run", "--every", "10ms", "--", "true"]);
    place.ok(&["pause"]);
    let colour = |raw: &str| raw.contains("[38;5;") || raw.contains("[33m");
    let mut terminal = Terminal::start(80, 24, &mut watch(&place, &[]));
    terminal.shows("PAUSED");
    assert!(colour(&terminal.raw()), "{:?}", terminal.raw());
    terminal.key("q");
    terminal.end();
    let mut terminal = Terminal::start(80, 24, watch(&place, &[]).env("NO_COLOR", "1"));
    terminal.shows("PAUSED");
    assert!(!colour(&terminal.raw()), "{:?}", terminal.raw());
    terminal.key("q");
    terminal.end();
    let mut terminal = Terminal::start(80, 24, watch(&place, &[]).env("TERM", "dumb"));
    terminal.shows("mail: ‖ PAUSED: paused");
    assert!(!terminal.raw().contains('\u{1b}'), "{:?}", terminal.raw());
    terminal.signal(Signal::INT);
    assert_eq!(terminal.end().signal(), Some(2));
}

#[test]
fn stored_tasks_are_shown_and_one_that_runs_is_opened() {
    let place = Backend::sqlite();
    place.ok(&["add", "--kind", "slow", "{\"to\": \"ada\"}"]);
    place.ok(&["add", "--kind", "other", "1", "2", "3"]);
    let _worker = place.spawn(&["work", "--kind", "slow", "--label", "host seven", "--", "sleep", "1000"]);
    let mut terminal = Terminal::start(100, 30, &mut watch(&place, &[]));
    terminal.shows("running and next");
    terminal.shows("ready 3");
    terminal.shows("leased 1");
    terminal.shows("host seven");
    terminal.shows("1 live");
    terminal.key("\t");
    terminal.shows("enter open");
    terminal.key("\r");
    terminal.shows("attempts");
    terminal.shows("1 begun, 0 failed");
    terminal.key("b");
    terminal.shows("{\"to\": \"ada\"}");
    terminal.key("q");
    assert!(terminal.end().success());
    is_given_back(&terminal);
}

#[test]
fn failures_are_grouped_on_the_screen() {
    let place = Backend::sqlite();
    place.ok(&["add", "--kind", "mail", "--max-attempts", "1", "1", "2"]);
    place.run(&["work", "--kind", "mail", "--until-empty", "--", "false"]);
    let mut terminal = Terminal::start(100, 30, &mut watch(&place, &[]));
    terminal.shows("RETRYING");
    terminal.shows("exit code 1");
    terminal.key("f");
    terminal.shows("2 failed:");
    terminal.key("q");
    assert!(terminal.end().success());
}
