//! Real processes that share a directory, and are killed.
#![cfg(unix)]

use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    io::{self, BufRead, Write},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::{self, Receiver},
    },
    time::Duration,
};

use interval_queue_contract::Micros;
use interval_queue_directory::{DirectoryStore, DirectoryTasks};
use interval_queue_task_contract::{Leased, State, TaskId, TaskStore};
use interval_queue_test_support::{Process, files::block_on};

use super::support::{Hand, LEASE, add, agree, all, count, done, id, mail, open, overview, task};

/// A copy of this program, and what it says.
struct Copy {
    process: Process,
    lines: Receiver<String>,
}

impl Copy {
    fn start(test: &str, path: &Path, n: u64) -> Self {
        let (sender, lines) = mpsc::channel();
        let mut process = Process::start(test, move |line| {
            if let Some(word) = line.strip_prefix("says ") {
                let _ = sender.send(word.to_owned());
            }
        });
        process.tell(&format!("{}\n{n}", path.display()));
        Self { process, lines }
    }
}

fn report(what: &str) {
    // In one write: a killed process leaves no half of a line.
    io::stdout().write_all(format!("\nsays {what}\n").as_bytes()).unwrap();
}

fn orders() -> (PathBuf, u64) {
    let mut orders = io::stdin().lock().lines().map_while(Result::ok);
    let mut order = || orders.next().unwrap();
    (order().into(), order().parse().unwrap())
}

fn in_directory() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().canonicalize().unwrap().join("jobs");
    (directory, path)
}

const BATCH: u64 = 5;

/// Adds and completes for ever, and tells what was answered.
fn add_and_complete() {
    let (path, n) = orders();
    block_on(async {
        let store = open(&path).await;
        let mut hand = Hand::new(&store, n);
        let mut held: Vec<Leased> = Vec::new();
        for at in 0.. {
            let first = n * 1_000_000 + at * BATCH;
            store.apply(&mail(), add((first..first + BATCH).map(task))).await.unwrap();
            report(&format!("added {first}"));
            let completed: Vec<_> = held.iter().map(|leased| leased.task.id).collect();
            held = hand.step(done(&held), 3).await.leased;
            completed.iter().for_each(|id| report(&format!("completed {id}")));
        }
    });
}

#[test]
fn a_killed_process_loses_nothing_that_was_answered() {
    const NAME: &str = "processes::a_killed_process_loses_nothing_that_was_answered";
    const ROUNDS: u64 = 10;
    if Process::is_copy() {
        return add_and_complete();
    }
    let (_directory, path) = in_directory();
    let (mut added, mut completed) = (BTreeSet::new(), BTreeSet::<TaskId>::new());
    for round in 0..ROUNDS {
        let mut copies: Vec<_> = (0..3).map(|n| Copy::start(NAME, &path, 1 + round * 3 + n)).collect();
        let mut reported = Vec::new();
        while reported.len() < 20 + round as usize * 7 {
            reported.push(copies[round as usize % 3].lines.recv().unwrap());
        }
        for copy in &mut copies {
            copy.process.kill();
            reported.extend(copy.lines.iter());
        }
        for word in reported {
            match word.split_once(' ').unwrap() {
                ("added", first) => added.extend((0..BATCH).map(|n| id(first.parse::<u64>().unwrap() + n))),
                ("completed", id) => _ = completed.insert(id.parse().unwrap()),
                other => panic!("{other:?}"),
            }
        }
    }
    assert!(added.len() > 100 && completed.len() > 50, "{} and {}", added.len(), completed.len());
    block_on(async {
        let store = open(&path).await;
        Hand::new(&store, 1_000).step(Vec::new(), 0).await;
        overview(&store).await;
        agree(&store).await;
        let stored = all(&store, &mail()).await;
        let there: BTreeSet<_> = stored.iter().map(|stored| stored.task.id).collect();
        assert!(added.is_subset(&there));
        // A batch is there as a whole or not at all.
        assert_eq!(there.len() as u64 % BATCH, 0);
        for stored in &stored {
            let is_done = stored.task.state == State::Done;
            assert!(is_done || !completed.contains(&stored.task.id), "{}", stored.task.id);
            assert_eq!(stored.result.is_some(), is_done, "{}", stored.task.id);
        }
    });
}

/// Leases and completes until there is nothing left, and tells of both.
fn work() {
    let (path, n) = orders();
    block_on(async {
        let store = open(&path).await;
        let mut hand = Hand::new(&store, n);
        let mut held: Vec<Leased> = Vec::new();
        let mut idle = 0;
        while idle < 3 {
            let stepped = hand.step(done(&held), 20).await;
            for leased in &held {
                let lost = stepped.lost.contains(&leased.task.id);
                report(&format!(
                    "{} {} {}",
                    if lost { "lost" } else { "done" },
                    leased.task.id,
                    leased.task.token
                ));
            }
            held = stepped.leased;
            for leased in &held {
                report(&format!("leased {} {}", leased.task.id, leased.task.token));
            }
            if held.is_empty() && !stepped.more {
                idle += 1;
                std::thread::sleep(Duration::from_millis(50));
            }
        }
        report("end . .");
    });
}

/// How many tasks: `INTERVAL_QUEUE_DIRECTORY_TASKS` says another number.
fn tasks() -> u64 {
    env::var("INTERVAL_QUEUE_DIRECTORY_TASKS").map_or(800, |tasks| tasks.parse().unwrap())
}

#[test]
fn killed_processes_run_no_task_twice_at_a_time() {
    const NAME: &str = "processes::killed_processes_run_no_task_twice_at_a_time";
    if Process::is_copy() {
        return work();
    }
    let (_directory, path) = in_directory();
    block_on(async {
        let store = open(&path).await;
        for first in (0..tasks()).step_by(200) {
            store.apply(&mail(), add((first..tasks().min(first + 200)).map(task))).await.unwrap();
        }
    });
    let mut copies: Vec<_> = (1..=8).map(|n| Copy::start(NAME, &path, n)).collect();
    let mut reported = Vec::new();
    for killed in 0..6 {
        // Each at another moment of the work.
        while reported.len() < (killed + 1) * 40 {
            reported.push(copies[killed].lines.recv_timeout(Duration::from_secs(120)).unwrap());
            reported.extend(copies.iter().flat_map(|copy| copy.lines.try_iter().collect::<Vec<_>>()));
        }
        copies[killed].process.kill();
        reported.extend(copies[killed].lines.iter());
        copies[killed] = Copy::start(NAME, &path, 10 + killed as u64);
    }
    for copy in copies {
        reported.extend(copy.lines.iter().take_while(|word| word != "end . ."));
    }
    // Of each run there is one, and of each task at most one that was done.
    let mut runs: BTreeMap<String, u32> = BTreeMap::new();
    let mut ended = BTreeSet::new();
    for word in reported {
        let words: Vec<_> = word.split(' ').collect();
        match words[0] {
            "leased" => *runs.entry(format!("{} {}", words[1], words[2])).or_default() += 1,
            "done" => assert!(ended.insert(words[1].to_owned()), "{} was done twice", words[1]),
            "lost" => panic!("{word}: nobody else may have taken it"),
            _ => {}
        }
    }
    assert!(runs.values().all(|runs| *runs == 1), "a token was given out twice");
    block_on(async {
        let store = open(&path).await;
        let seen = overview(&store).await;
        agree(&store).await;
        // What the killed ones had is leased to them for its time.
        let (leased, ended_well) = (count(&seen, State::Leased), count(&seen, State::Done));
        assert_eq!(leased + ended_well, tasks());
        assert!(leased <= 6 * 20 && ended_well >= ended.len() as u64, "{leased} and {ended_well}");
        drop(store);
        // Once that is over another one runs it.
        let clock = Arc::new(AtomicU64::new(seen.at.get()));
        let reading = clock.clone();
        let later = move || Micros::new(reading.load(Ordering::Relaxed));
        let store = DirectoryStore::builder(&path).open().await.unwrap();
        let later = DirectoryTasks::with_clock(&store, later).await.unwrap();
        let (mut hand, mut held) = (Hand::new(&later, 100), Vec::new());
        while clock.fetch_add(LEASE.get() / 10, Ordering::Relaxed) < (seen.at + LEASE * 3).get() {
            held = hand.step(done(&held), 6 * 20).await.leased;
        }
        assert_eq!(count(&overview(&later).await, State::Done), tasks());
    });
}
