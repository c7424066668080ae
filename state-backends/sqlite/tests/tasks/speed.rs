//! How many tasks a second go through a database: added, leased, settled. It judges nothing.

use std::{
    io::{self, Write},
    path::Path,
    sync::mpsc,
    time::{Duration, Instant},
};

use interval_queue_task_contract::TaskStore;
use interval_queue_test_support::Process;

use super::support::{Hand, add, done, mail, open, task};

/// What a copy does: it adds so many tasks and settles what it gets, so many a command, until it hears that all are done.
fn work(name: &str) {
    let order = || {
        let mut line = String::new();
        io::stdin().read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    };
    let (path, n, tasks, size) =
        (order(), order().parse::<u64>().unwrap(), order(), order().parse::<u64>().unwrap());
    let tasks: u64 = tasks.parse().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = open(Path::new(&path)).await;
        store.apply(&mail(), add([])).await.unwrap();
        say(name, "is ready");
        order();
        let adds = async {
            for at in 0..tasks / size {
                let first = n * 100_000_000 + at * size;
                store.apply(&mail(), add((first..first + size).map(task))).await.unwrap();
            }
        };
        let (stop, mut stopped) = tokio::sync::watch::channel(false);
        let steps = async {
            let mut hand = Hand::new(&store, n);
            let mut held = Vec::new();
            while !*stopped.borrow_and_update() {
                let settled = held.len();
                held = hand.step(done(&held), size as u32).await.leased;
                if settled > 0 {
                    say(name, &format!("settled {settled}"));
                }
                if held.is_empty() {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            }
        };
        let wait = tokio::task::spawn_blocking(order);
        let end = async {
            let _ = wait.await;
            let _ = stop.send(true);
        };
        tokio::join!(adds, steps, end);
    });
}

fn say(name: &str, what: &str) {
    io::stdout().write_all(format!("\n{name} {what}\n").as_bytes()).unwrap();
}

fn run(test: &str, processes: u64, tasks: u64, size: u64) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tasks.db");
    let (sender, heard) = mpsc::channel();
    let start = |n: u64| {
        let sender = sender.clone();
        let mut process = Process::start(test, move |line| {
            if let Some(word) = line.strip_prefix("speed ") {
                let _ = sender.send(word.strip_prefix("settled ").map_or(0, |n| n.parse::<u64>().unwrap()));
            }
        });
        process.tell(&format!("{}\n{n}\n{}\n{size}", path.display(), tasks / processes));
        process
    };
    let mut crowd: Vec<_> = (0..processes).map(start).collect();
    (0..processes).for_each(|_| assert_eq!(heard.recv().unwrap(), 0));
    #[allow(clippy::disallowed_methods, reason = "it measures")]
    let begun = Instant::now();
    crowd.iter_mut().for_each(|process| process.tell("go"));
    let mut settled = 0;
    while settled < tasks {
        settled += heard.recv_timeout(Duration::from_secs(60)).unwrap();
    }
    let speed = tasks as f64 / begun.elapsed().as_secs_f64();
    println!("{processes} processes, {size:3} a command: {speed:7.0} tasks a second");
    crowd.iter_mut().for_each(|process| process.tell("stop"));
    crowd.iter_mut().for_each(Process::wait);
}

#[test]
#[ignore = "needs a release build and an idle machine: it measures"]
fn speed() {
    const NAME: &str = "speed::speed";
    if Process::is_copy() {
        return work("speed");
    }
    let only = |name: &str, n: u64| std::env::var(name).map_or(true, |only| only == n.to_string());
    for processes in [1, 4].into_iter().filter(|n| only("PROCESSES", *n)) {
        let sizes = [(1, 8_000), (10, 40_000), (100, 100_000)];
        for (size, tasks) in sizes.into_iter().filter(|(size, _)| only("SIZE", *size)) {
            run(NAME, processes, tasks, size);
        }
    }
}
