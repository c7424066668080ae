//! Real processes on one file: no ticket is given twice or lost, whoever is killed.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::{
    fs,
    io::{self, BufRead, BufReader, Write},
    process::{Child, Stdio},
    sync::mpsc,
    thread,
};

use interval_queue_json_file::JsonFileState;
use support::{Taker, argument, copy_of, last_ticket, state_in};

/// A process of this test program that takes tickets and says which; its lines are collected by a thread.
struct Process {
    child: Child,
    lines: mpsc::Receiver<u64>,
}

impl Process {
    fn start(test: &str, argument: String) -> Self {
        let mut child = copy_of(test, argument, &[]).stdout(Stdio::piped()).spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if let Some(ticket) = line.strip_prefix("ticket ") {
                    let _ = sender.send(ticket.parse().unwrap());
                }
            }
        });
        Self { child, lines }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a process does: the argument is `path:shard:takes`.
async fn take_tickets(argument: &str) {
    let mut parts = argument.rsplitn(3, ':');
    let takes: u64 = parts.next().unwrap().parse().unwrap();
    let shard = parts.next().unwrap();
    let state = JsonFileState::open(parts.next().unwrap()).await.unwrap();
    let mut taker = Taker::new(&state, shard);
    println!();
    for _ in 0..takes {
        let ticket = taker.take().await.unwrap();
        // One write a line: a killed process leaves no half of one.
        io::stdout().write_all(format!("ticket {ticket}\n").as_bytes()).unwrap();
    }
}

#[tokio::test]
async fn four_processes_get_every_ticket_once() {
    if let Some(argument) = argument() {
        return take_tickets(&argument).await;
    }
    let directory = tempfile::tempdir().unwrap();
    let (state, path) = state_in(directory.path()).await;
    let processes: Vec<_> = (0..4)
        .map(|n| {
            Process::start(
                "four_processes_get_every_ticket_once",
                format!("{}:shard {n}:200", path.display()),
            )
        })
        .collect();
    let mut tickets: Vec<_> = processes.iter().flat_map(|process| process.lines.iter()).collect();
    tickets.sort_unstable();
    assert_eq!(tickets, (1..=800).collect::<Vec<_>>());
    assert_eq!(last_ticket(&state).await, 800);
}

#[tokio::test]
async fn a_process_killed_at_any_moment_leaves_a_whole_file_and_the_others_go_on() {
    const NAME: &str = "a_process_killed_at_any_moment_leaves_a_whole_file_and_the_others_go_on";
    const ENDLESS: u64 = 1_000_000;
    if let Some(argument) = argument() {
        return take_tickets(&argument).await;
    }
    let directory = tempfile::tempdir().unwrap();
    let (state, path) = state_in(directory.path()).await;
    let start = |name: String| Process::start(NAME, format!("{}:{name}:{ENDLESS}", path.display()));
    let survivors = [start("survivor 1".into()), start("survivor 2".into())];
    let mut tickets = Vec::new();
    for round in 0..20 {
        let mut victim = start(format!("victim {round}"));
        // At a moment of the other processes' making: as unrelated to the victim's steps as can be.
        tickets.push(victim.lines.recv().unwrap());
        for _ in 0..round {
            tickets.push(survivors[0].lines.recv().unwrap());
        }
        victim.child.kill().unwrap();
        let whole: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        assert!(whole["queues"]["mail"]["ticket"].is_u64(), "{whole}");
        victim.child.wait().unwrap();
        tickets.extend(victim.lines.iter());
        // Both survivors take more tickets than can have been on their way.
        for survivor in &survivors {
            let last = last_ticket(&state).await;
            let next = || survivor.lines.recv().unwrap();
            let mut ticket = next();
            tickets.push(ticket);
            while ticket <= last {
                ticket = next();
                tickets.push(ticket);
            }
        }
    }
    for mut survivor in survivors {
        survivor.child.kill().unwrap();
        survivor.child.wait().unwrap();
        tickets.extend(survivor.lines.iter());
    }
    let given = tickets.len();
    tickets.sort_unstable();
    tickets.dedup();
    assert_eq!(tickets.len(), given, "a ticket was given twice");
    let last = last_ticket(&state).await;
    // A killed process may have taken one ticket that it could not tell of any more.
    assert!(last - given as u64 <= 22, "{given} tickets told of, the last is {last}");
    assert_eq!(Taker::new(&state, "last").take().await.unwrap(), last + 1);
}
