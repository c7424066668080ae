//! What a directory costs: by hand, best on an idle machine, with optimizations.
//! `INTERVAL_QUEUE_DIRECTORY_TASKS` says how many tasks wait besides.
//!
//! `cargo test --release -p interval-queue-directory --test tasks -- --ignored --nocapture measure`
#![cfg(target_os = "linux")]

use std::{
    env, fs,
    io::{self, BufRead, Write},
    path::{Path, PathBuf},
    sync::mpsc,
    time::{Duration, Instant},
};

use interval_queue_task_contract::{Leased, NewTask, TaskStore, When};
use interval_queue_test_support::{Process, files::block_on};

use super::support::{Hand, add, done, mail, open, task};

const WORK_TIME: Duration = Duration::from_secs(4);

/// Clock ticks of the processor that this process has used, as hundredths of a second.
fn used() -> u64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<_> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

/// Adds, leases and completes so many at a time, for a while.
#[allow(clippy::disallowed_methods, reason = "measures")]
fn work() {
    let mut orders = io::stdin().lock().lines().map_while(Result::ok);
    let mut order = || orders.next().unwrap();
    let (path, n, size): (PathBuf, u64, u64) =
        (order().into(), order().parse().unwrap(), order().parse().unwrap());
    block_on(async {
        let store = open(&path).await;
        let mut hand = Hand::new(&store, n);
        let mut held: Vec<Leased> = Vec::new();
        let (mut ended, begun, before) = (0, Instant::now(), used());
        for at in 0.. {
            if begun.elapsed() > WORK_TIME {
                break;
            }
            let first = n * 100_000_000 + at * size;
            store.apply(&mail(), add((first..first + size).map(task))).await.unwrap();
            let stepped = hand.step(done(&held), size as u32).await;
            ended += held.len();
            held = stepped.leased;
        }
        let text = format!("\nsays {ended} {} {}\n", begun.elapsed().as_micros(), used() - before);
        io::stdout().write_all(text.as_bytes()).unwrap();
    });
}

#[test]
#[ignore = "measures"]
fn measure_processes() {
    const NAME: &str = "measure::measure_processes";
    if Process::is_copy() {
        return work();
    }
    for processes in [1, 4] {
        for size in [1, 10, 100] {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("jobs");
            let (sender, lines) = mpsc::channel();
            let copies: Vec<_> = (1..=processes)
                .map(|n| {
                    let sender = sender.clone();
                    let mut process = Process::start(NAME, move |line| {
                        if let Some(word) = line.strip_prefix("says ") {
                            let _ = sender.send(word.to_owned());
                        }
                    });
                    process.tell(&format!("{}\n{n}\n{size}", path.display()));
                    process
                })
                .collect();
            let (mut rate, mut ended, mut used) = (0.0, 0, 0);
            for _ in &copies {
                let word = lines.recv().unwrap();
                let numbers: Vec<u64> = word.split(' ').map(|number| number.parse().unwrap()).collect();
                rate += numbers[0] as f64 / (numbers[1] as f64 / 1e6);
                ended += numbers[0];
                used += numbers[2];
            }
            let each = used as f64 * 10_000.0 / ended.max(1) as f64;
            println!(
                "{processes} processes, {size} at a time: {rate:.0} tasks a second, {each:.0} us of CPU each"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "measures"]
#[allow(clippy::disallowed_methods, reason = "measures")]
async fn measure_many_that_wait() {
    let many = env::var("INTERVAL_QUEUE_DIRECTORY_TASKS").map_or(100_000, |tasks| tasks.parse().unwrap());
    for waiting in [1_000, many] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("jobs");
        let store = open(&path).await;
        let begun = Instant::now();
        for first in (0..waiting).step_by(1_000) {
            let later = |n| NewTask {
                not_before: When::After(interval_queue_contract::Micros::from_millis(86_400_000)),
                ..task(n)
            };
            let half = first + 500;
            store
                .apply(&mail(), add((first..half).map(later).chain((half..first + 1_000).map(task))))
                .await
                .unwrap();
        }
        let added = begun.elapsed();
        let mut hand = Hand::new(&store, 1);
        hand.step(Vec::new(), 0).await;
        // What was added is looked at once.
        tokio::time::sleep(Duration::from_millis(100)).await;
        super::support::overview(&store).await;
        print_steps(&mut hand, waiting, added, &path, &store).await;
    }
}

#[allow(clippy::disallowed_methods, reason = "measures")]
async fn print_steps(
    hand: &mut Hand<'_>,
    waiting: u64,
    added: Duration,
    path: &Path,
    store: &interval_queue_directory::DirectoryTasks,
) {
    let mut held: Vec<Leased> = Vec::new();
    let (begun, before) = (Instant::now(), used());
    for _ in 0..45 {
        held = hand.step(done(&held), 10).await.leased;
    }
    let (took, cpu) = (begun.elapsed(), used() - before);
    let begun = Instant::now();
    super::support::overview(store).await;
    let scan = begun.elapsed();
    fs::remove_file(path.join("index.db")).unwrap();
    let begun = Instant::now();
    super::support::overview(store).await;
    println!(
        "{waiting} wait: added in {added:?}; 45 steps of 10 in {took:?}, {cpu} ticks of CPU; a scan {scan:?}; the index is made again \
         in {:?}",
        begun.elapsed()
    );
}
