//! Real processes on one database: no ticket is given twice or lost, whoever is killed.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::{
    fs,
    io::{self, BufRead, Write},
    path::Path,
    sync::mpsc,
    time::Duration,
};

use interval_queue_contract::{StateError, StateErrorKind};
use interval_queue_sqlite::{Durability, SqliteState};
use interval_queue_test_support::Process;
use support::{Taker, is_whole, last_ticket, look, open_queue};

/// What a copy of this program does: it opens the database that it is told of, and takes tickets for as long
/// as it is told to.
fn take_tickets() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut orders = io::stdin().lock().lines().map_while(Result::ok);
    let (path, shard) = (orders.next().unwrap(), orders.next().unwrap());
    let takes: u64 = orders.next().unwrap().parse().unwrap();
    runtime.block_on(async {
        // Forty processes with a flush each on a poor disk need more than the usual five seconds to take
        // turns.
        let builder = SqliteState::builder(path).lock_timeout(Duration::from_secs(60));
        let state = builder.durability(Durability::Relaxed).open().await.unwrap();
        open_queue(&state).await.unwrap();
        let mut taker = Taker::new(&state, &shard);
        for _ in 0..takes {
            let ticket = taker.take().await.unwrap();
            // One write a line: a killed process leaves no half of one.
            io::stdout().write_all(format!("\nticket {ticket}\n").as_bytes()).unwrap();
        }
    });
}

/// What another copy does: it opens the database for every ticket, whatever becomes of it meanwhile.
fn open_and_take() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut orders = io::stdin().lock().lines().map_while(Result::ok);
    let (path, shard) = (orders.next().unwrap(), orders.next().unwrap());
    let takes: u64 = orders.next().unwrap().parse().unwrap();
    runtime.block_on(async {
        let mut kept = None;
        for take in 0..takes {
            // Each second one on the connection of the one before.
            let state = match kept.take() {
                Some(state) => state,
                None => insist(async || {
                    let builder = SqliteState::builder(&path).durability(Durability::Relaxed);
                    builder.lock_timeout(Duration::from_secs(60)).open().await
                })
                .await
                .unwrap(),
            };
            insist(async || open_queue(&state).await).await.unwrap();
            match Taker::new(&state, &format!("{shard} {take}")).take().await {
                Ok(ticket) => io::stdout().write_all(format!("\nticket {ticket}\n").as_bytes()).unwrap(),
                // It was deleted since, or just then.
                Err(error) => {
                    assert!(error.is_retryable() || error.kind() == StateErrorKind::NotFound, "{error}");
                }
            }
            kept = (take % 2 == 0).then_some(state);
        }
    });
}

/// Tries again what may pass by itself, as shards do.
async fn insist<T>(mut attempt: impl AsyncFnMut() -> Result<T, StateError>) -> Result<T, StateError> {
    for _ in 0..500 {
        match attempt().await {
            Err(error) if error.is_retryable() => tokio::time::sleep(Duration::from_millis(10)).await,
            result => return result,
        }
    }
    attempt().await
}

struct Worker {
    process: Process,
    tickets: mpsc::Receiver<u64>,
}

impl Worker {
    fn start(test: &str, path: &Path, shard: &str, takes: u64) -> Self {
        let (sender, tickets) = mpsc::channel();
        let mut process = Process::start(test, move |line| {
            if let Some(ticket) = line.strip_prefix("ticket ") {
                let _ = sender.send(ticket.parse().unwrap());
            }
        });
        process.tell(&format!("{}\n{shard}\n{takes}", path.display()));
        Self { process, tickets }
    }
}

#[test]
fn forty_processes_that_open_and_work_at_once_get_every_ticket_once() {
    const NAME: &str = "forty_processes_that_open_and_work_at_once_get_every_ticket_once";
    if Process::is_copy() {
        return take_tickets();
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("queues.db");
    let mut workers: Vec<_> =
        (0..40).map(|n| Worker::start(NAME, &path, &format!("shard {n}"), 25)).collect();
    workers.iter_mut().for_each(|worker| worker.process.wait());
    let mut tickets: Vec<_> = workers.iter().flat_map(|worker| worker.tickets.iter()).collect();
    tickets.sort_unstable();
    assert_eq!(tickets, (1..=1_000).collect::<Vec<_>>());
    assert!(is_whole(&path));
}

#[test]
fn a_process_killed_at_any_moment_leaves_a_whole_database_and_the_others_go_on() {
    const NAME: &str = "a_process_killed_at_any_moment_leaves_a_whole_database_and_the_others_go_on";
    const ENDLESS: u64 = 1_000_000;
    if Process::is_copy() {
        return take_tickets();
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("queues.db");
    let mut tickets = Vec::new();
    // In half of the rounds this process recovers what the killed ones left, in the others those of the next
    // round at once.
    for round in 0..24 {
        let mut victims: Vec<_> =
            (0..3).map(|n| Worker::start(NAME, &path, &format!("victim {round} {n}"), ENDLESS)).collect();
        // At a moment of the processes' making: as unrelated to the victims' steps as can be.
        tickets.push(victims[0].tickets.recv().unwrap());
        for _ in 0..round * 3 {
            tickets.push(victims[round % 3].tickets.recv().unwrap());
        }
        for victim in &mut victims {
            victim.process.kill();
            assert!(round % 2 == 0 || is_whole(&path), "round {round}");
        }
        tickets.extend(victims.iter().flat_map(|victim| victim.tickets.try_iter()));
    }
    assert!(is_whole(&path));
    let given = tickets.len() as u64;
    tickets.sort_unstable();
    tickets.dedup();
    assert_eq!(tickets.len() as u64, given, "a ticket was given twice");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let state = SqliteState::open(&path).await.unwrap();
        let last = last_ticket(&state).await;
        // A killed process may have taken one ticket that it could not tell of any more.
        assert!((given..=given + 24 * 3).contains(&last), "{given} tickets told of, the last is {last}");
        assert_eq!(Taker::new(&state, "last").take().await.unwrap(), last + 1);
        assert!(look(&state).await.unwrap().is_some());
    });
}

#[test]
fn processes_that_open_and_close_all_the_time_disturb_nobody() {
    const NAME: &str = "processes_that_open_and_close_all_the_time_disturb_nobody";
    if Process::is_copy() {
        return open_and_take();
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("queues.db");
    let mut workers: Vec<_> = (0..6).map(|n| Worker::start(NAME, &path, &format!("shard {n}"), 50)).collect();
    workers.iter_mut().for_each(|worker| worker.process.wait());
    let mut tickets: Vec<_> = workers.iter().flat_map(|worker| worker.tickets.iter()).collect();
    tickets.sort_unstable();
    assert_eq!(tickets, (1..=300).collect::<Vec<_>>());
    assert!(is_whole(&path));
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "who closes last takes the log away");
}

#[test]
fn a_database_deleted_at_any_moment_is_made_anew_and_whole() {
    const NAME: &str = "a_database_deleted_at_any_moment_is_made_anew_and_whole";
    const TAKES: u64 = 120;
    if Process::is_copy() {
        return open_and_take();
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("queues.db");
    let mut workers: Vec<_> =
        (0..4).map(|n| Worker::start(NAME, &path, &format!("shard {n}"), TAKES)).collect();
    for round in 0..12 {
        for _ in 0..10 + round {
            workers[round % 4].tickets.recv().unwrap();
        }
        let _ = fs::remove_file(&path);
    }
    workers.iter_mut().for_each(|worker| worker.process.wait());
    assert!(is_whole(&path));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let state = SqliteState::open(&path).await.unwrap();
        let last = last_ticket(&state).await;
        assert_eq!(Taker::new(&state, "last").take().await.unwrap(), last + 1);
    });
}
