//! Processes pass the gate one at a time, and pass it by if it stays closed.
#![cfg(unix)]

use std::{
    path::Path,
    sync::mpsc::{Receiver, channel},
    time::Duration,
};

use interval_queue_sqlite::index::Gate;
use interval_queue_store::files::{beside, lock};
use interval_queue_test_support::{Process, files::block_on};

use super::support::{Hand, open};

fn pass(gate: &mut Gate) {
    gate.pass();
    while gate.held_for().is_none() {
        std::thread::sleep(Duration::from_millis(1));
        gate.pass();
    }
}

#[test]
fn a_gate_passed_by_stays_with_its_holder() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tasks.db");
    let (mut holder, mut other) = (Gate::beside(&path), Gate::beside(&path));
    pass(&mut holder);
    let file = std::fs::File::open(beside(&path, "-gate")).unwrap();
    for _ in 0..3 {
        other.pass();
        assert!(other.held_for().is_none());
        other.leave();
        assert!(!lock::try_lock(&file).unwrap(), "the holder lost the gate");
        std::thread::sleep(Duration::from_millis(100));
    }
    holder.leave();
    // The thread of the other gate still waited, and must not keep what nobody awaits.
    lock::lock(&file).unwrap();
    lock::unlock(&file).unwrap();
    pass(&mut other);
    assert!(!lock::try_lock(&file).unwrap());
    other.leave();
    assert!(lock::try_lock(&file).unwrap());
}

/// The copy: holds the gate, or steps for ever, as its first order says.
fn hold_or_step() {
    let mut orders = std::io::stdin().lines().map_while(Result::ok);
    let path = orders.next().unwrap();
    let path = Path::new(&path);
    match &*orders.next().unwrap() {
        "hold" => loop {
            let mut gate = Gate::beside(path);
            pass(&mut gate);
            println!("\nsays held");
            orders.next().unwrap();
            gate.leave();
            println!("\nsays left");
            orders.next().unwrap();
        },
        worker => block_on(async {
            let store = open(path).await;
            let mut hand = Hand::new(&store, worker.parse().unwrap());
            loop {
                hand.step(Vec::new(), 0).await;
                println!("\nsays step");
            }
        }),
    }
}

fn start(name: &str, path: &Path, order: &str) -> (Process, Receiver<()>) {
    let (sender, says) = channel();
    let mut process = Process::start(name, move |line| {
        if line.starts_with("says ") {
            let _ = sender.send(());
        }
    });
    process.tell(&format!("{}\n{order}", path.display()));
    (process, says)
}

// Takes five seconds: the rates with and without a stopped process alternate, since other programs disturb both.
#[test]
fn processes_go_on_beside_one_stopped_in_the_gate() {
    const NAME: &str = "gate_tests::processes_go_on_beside_one_stopped_in_the_gate";
    const ROUNDS: u32 = 3;
    if Process::is_copy() {
        return hold_or_step();
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tasks.db");
    let workers = ["1", "2"].map(|n| start(NAME, &path, n));
    let steps = || {
        workers.iter().for_each(|(_, says)| _ = says.try_iter().count());
        std::thread::sleep(Duration::from_millis(700));
        workers.each_ref().map(|(_, says)| says.try_iter().count())
    };
    workers.iter().for_each(|(_, says)| says.recv().unwrap());
    let (mut holder, held) = start(NAME, &path, "hold");
    let (mut free, mut beside_stopped) = (0, 0);
    for _ in 0..ROUNDS {
        held.recv().unwrap();
        holder.freeze();
        let each = steps();
        assert!(each.iter().all(|steps| *steps > 0), "{each:?}");
        beside_stopped += each.iter().sum::<usize>();
        holder.thaw();
        holder.tell("leave");
        held.recv().unwrap();
        free += steps().iter().sum::<usize>();
        holder.tell("hold");
    }
    assert!(beside_stopped * 2 >= free, "{beside_stopped} steps beside a stopped process, {free} without");
}
