//! Real processes that share the tasks of a database, are killed and stopped.
#![cfg(unix)]

use std::{
    collections::BTreeSet,
    io::{self, BufRead, Write},
    path::{Path, PathBuf},
    sync::mpsc::{self, Receiver},
    time::Duration,
};

use interval_queue_contract::{Micros, StateErrorKind};
use interval_queue_task_contract::{Add, Key, MIN_LEASE, NewTask, Policy, State, TaskStore};
use interval_queue_test_support::{Process, files::block_on};

use super::support::{Hand, add, all, done, id, mail, open, task, try_open, worker};

const BATCH: u64 = 5;

/// A copy of this program, and what it says.
struct Copy {
    process: Process,
    says: Receiver<String>,
}

impl Copy {
    fn start(test: &str, path: &Path, n: u64) -> Self {
        let (sender, says) = mpsc::channel();
        let mut process = Process::start(test, move |line| {
            if let Some(word) = line.strip_prefix("says ") {
                let _ = sender.send(word.to_owned());
            }
        });
        process.tell(&format!("{}\n{n}", path.display()));
        Self { process, says }
    }
}

fn say(what: &str) {
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
    let path = directory.path().canonicalize().unwrap().join("tasks.db");
    (directory, path)
}

fn is_whole(path: &Path) -> bool {
    let check = rusqlite::Connection::open(path).unwrap();
    check.query_row("PRAGMA integrity_check", [], |row| row.get::<_, String>(0)).unwrap() == "ok"
}

/// Adds and completes for ever, and tells what was answered.
fn add_and_complete() {
    let (path, n) = orders();
    block_on(async {
        let store = open(&path).await;
        let mut hand = Hand::new(&store, n);
        let mut held = Vec::new();
        for at in 0.. {
            let first = n * 1_000_000 + at * BATCH;
            store.apply(&mail(), add((first..first + BATCH).map(task))).await.unwrap();
            say(&format!("added {first}"));
            let completed: Vec<_> =
                held.iter().map(|leased: &interval_queue_task_contract::Leased| leased.task.id).collect();
            held = hand.step(done(&held), 3).await.leased;
            completed.iter().for_each(|id| say(&format!("completed {id}")));
        }
    });
}

#[test]
fn a_killed_process_loses_nothing_that_was_answered() {
    const NAME: &str = "task_processes::a_killed_process_loses_nothing_that_was_answered";
    const ROUNDS: u64 = 12;
    if Process::is_copy() {
        return add_and_complete();
    }
    let (_directory, path) = in_directory();
    let (mut added, mut completed) = (BTreeSet::new(), BTreeSet::new());
    for round in 0..ROUNDS {
        let mut crowd: Vec<_> = (0..3).map(|n| Copy::start(NAME, &path, 1 + round * 3 + n)).collect();
        let mut heard = Vec::new();
        // At a moment of their making, as unrelated to their steps as can be.
        for _ in 0..=round * 7 {
            heard.push(crowd[round as usize % 3].says.recv().unwrap());
        }
        for copy in &mut crowd {
            copy.process.kill();
            heard.extend(copy.says.iter());
        }
        for word in heard {
            match word.split_once(' ').unwrap() {
                ("added", first) => added.extend((0..BATCH).map(|n| id(first.parse::<u64>().unwrap() + n))),
                ("completed", id) => _ = completed.insert(id.parse().unwrap()),
                other => panic!("{other:?}"),
            }
        }
        assert!(is_whole(&path), "round {round}");
    }
    assert!(added.len() > 100 && completed.len() > 50, "{} and {}", added.len(), completed.len());
    let stored = block_on(async { all(&open(&path).await, &mail()).await });
    let there: BTreeSet<_> = stored.iter().map(|stored| stored.task.id).collect();
    assert!(added.is_subset(&there));
    // A batch is there as a whole or not at all.
    assert_eq!(there.len() as u64 % BATCH, 0);
    let is_done = |state: State| state == State::Done;
    let ended: BTreeSet<_> =
        stored.iter().filter(|stored| is_done(stored.task.state)).map(|stored| stored.task.id).collect();
    assert!(completed.is_subset(&ended));
    for stored in &stored {
        assert_eq!(stored.result.is_some(), is_done(stored.task.state), "{}", stored.task.id);
    }
}

/// Leases, and ends each run within a transaction that counts it, for ever.
fn count_within() {
    let (path, n) = orders();
    block_on(async {
        let store = open(&path).await;
        let mut database = rusqlite::Connection::open(&path).unwrap();
        let mut hand = Hand::new(&store, n);
        // So that it is held for dead as soon as can be.
        hand.step.lease = MIN_LEASE;
        hand.step(Vec::new(), 0).await;
        loop {
            let leased = hand.step(Vec::new(), 3).await.leased;
            for end in done(&leased) {
                let transaction = database.transaction().unwrap();
                let count = "UPDATE effect SET times = times + 1 WHERE task = ?1";
                transaction.execute(count, [end.id.to_string()]).unwrap();
                // The lease may have ended on a busy machine.
                if store.complete_within(&transaction, &mail(), worker(n), &end).is_ok() {
                    transaction.commit().unwrap();
                    say("ended");
                }
            }
            if leased.is_empty() {
                say("idle");
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    });
}

#[test]
fn effects_happen_exactly_once_over_many_kills() {
    const NAME: &str = "task_processes::effects_happen_exactly_once_over_many_kills";
    const ROUNDS: u64 = 25;
    const TASKS: u64 = 900;
    if Process::is_copy() {
        return count_within();
    }
    let (_directory, path) = in_directory();
    let policy = Policy::default().max_attempts(1_000).backoff(Duration::ZERO, Duration::ZERO).into();
    let key = |n: u64| n.is_multiple_of(3).then(|| Key::new(format!("key {}", n % 7)).unwrap());
    let tasks = (0..TASKS).map(|n| NewTask { policy, key: key(n), ..task(n) });
    block_on(async { open(&path).await.apply(&mail(), add(tasks)).await.unwrap() });
    let database = rusqlite::Connection::open(&path).unwrap();
    database.execute_batch("CREATE TABLE effect (task TEXT PRIMARY KEY, times INTEGER NOT NULL)").unwrap();
    for n in 0..TASKS {
        database.execute("INSERT INTO effect VALUES (?1, 0)", [id(n).to_string()]).unwrap();
    }
    let start = |n| Copy::start(NAME, &path, n);
    let mut crowd = [start(1), start(2)];
    for round in 0..ROUNDS {
        let copy = &mut crowd[round as usize % 2];
        // At another moment each time, mostly between a commit and the next step.
        (0..=round % 9).for_each(|_| _ = copy.says.recv().unwrap());
        copy.process.kill();
        *copy = start(3 + round);
    }
    let left = "SELECT count(*) FROM interval_queue_task WHERE ended IS NULL";
    let mut last = start(3 + ROUNDS);
    let mut left_over = TASKS as i64;
    while left_over > 0 {
        last.says.recv().unwrap();
        left_over = database.query_row(left, [], |row| row.get(0)).unwrap();
    }
    last.process.kill();
    crowd.iter_mut().for_each(|copy| copy.process.kill());
    let sums = "SELECT count(*) FILTER (WHERE times = 1), sum(times) FROM effect";
    let sums: (i64, i64) = database.query_row(sums, [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    assert_eq!(sums, (TASKS as i64, TASKS as i64), "tasks with one effect, and effects");
    let failures = "SELECT sum(failures) FROM interval_queue_task";
    let failures: i64 = database.query_row(failures, [], |row| row.get(0)).unwrap();
    assert!(failures > 0, "no run was ever lost");
    assert!(is_whole(&path));
}

/// Steps for ever, and tells of each: several workers, so that there is always somebody who waits.
fn step_for_ever() {
    let (path, n) = orders();
    block_on(async {
        let store = open(&path).await;
        let work = async |k: u64| {
            let mut hand = Hand::new(&store, n * 10 + k);
            loop {
                hand.step(Vec::new(), 0).await;
                say("step");
            }
        };
        tokio::join!(work(0), work(1), work(2), work(3));
    });
}

#[test]
fn four_processes_that_step_all_the_time_are_all_served() {
    const NAME: &str = "task_processes::four_processes_that_step_all_the_time_are_all_served";
    const TOGETHER: usize = 8_000;
    if Process::is_copy() {
        return step_for_ever();
    }
    let (_directory, path) = in_directory();
    let crowd: Vec<_> = (1..=4).map(|n| Copy::start(NAME, &path, n)).collect();
    // All have begun.
    crowd.iter().for_each(|copy| _ = copy.says.recv().unwrap());
    let mut steps = [0_usize; 4];
    while steps.iter().sum::<usize>() < TOGETHER {
        for (copy, steps) in crowd.iter().zip(&mut steps) {
            *steps += copy.says.try_iter().count();
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let least = *steps.iter().min().unwrap();
    assert!(least * 4 > TOGETHER / 4, "each of four is served a fair share: {steps:?}");
}

/// It takes the right to write before it looks: others write all the time, and what was looked at before
/// would be stale.
#[test]
fn an_application_gets_its_turn_among_busy_workers() {
    const NAME: &str = "task_processes::an_application_gets_its_turn_among_busy_workers";
    const TOGETHER: u64 = 300;
    if Process::is_copy() {
        return step_for_ever();
    }
    let (_directory, path) = in_directory();
    let crowd: Vec<_> = (1..=3).map(|n| Copy::start(NAME, &path, n)).collect();
    crowd.iter().for_each(|copy| _ = copy.says.recv().unwrap());
    block_on(async {
        let store = open(&path).await;
        let mut database = rusqlite::Connection::open(&path).unwrap();
        database.busy_timeout(Duration::from_secs(60)).unwrap();
        for n in 0..TOGETHER {
            let transaction = database.transaction().unwrap();
            let add = Add { tasks: [task(n)].into(), sequence: 0, age: Micros::ZERO };
            store.add_within(&transaction, &mail(), add).unwrap();
            transaction.commit().unwrap();
        }
    });
    assert!(crowd.iter().all(|copy| copy.says.try_iter().count() > 0), "all have stepped meanwhile");
}

// Takes six seconds: it stops the process forty times, at times for as long as the other one waits for the lock.
#[test]
fn a_stopped_process_does_not_hang_the_others() {
    const NAME: &str = "task_processes::a_stopped_process_does_not_hang_the_others";
    if Process::is_copy() {
        return step_for_ever();
    }
    let (_directory, path) = in_directory();
    let copy = Copy::start(NAME, &path, 1);
    let mut was_held = 0;
    block_on(async {
        copy.says.recv().unwrap();
        let store = try_open(&path, Duration::from_millis(300)).await.unwrap();
        let mut hand = Hand::new(&store, 2);
        for n in 0..40 {
            // At another moment each time.
            std::thread::sleep(Duration::from_micros(n * 77 % 1_500));
            copy.process.freeze();
            match hand.try_step(Vec::new(), 0).await {
                Ok(_) => {}
                Err(error) => {
                    assert_eq!(error.kind(), StateErrorKind::Unreachable, "{error}");
                    assert!(error.to_string().contains("was held by another process for 300ms"), "{error}");
                    was_held += 1;
                }
            }
            copy.process.thaw();
            // Whatever it was stopped in, it goes on, and so does everybody.
            served_again(&mut hand).await;
            while copy.says.try_recv().is_ok() {}
            copy.says.recv().unwrap();
        }
    });
    assert!(was_held > 0, "it was never stopped inside");
}

/// Steps until one is answered.
async fn served_again(hand: &mut Hand<'_>) {
    for _ in 0..100 {
        if hand.try_step(Vec::new(), 0).await.is_ok() {
            return;
        }
    }
    panic!("nobody is served any more");
}
