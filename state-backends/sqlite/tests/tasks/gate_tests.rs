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
    let open = |suffix| std::fs::File::open(beside(&path, suffix)).unwrap();
    let is_free = |file: &std::fs::File| {
        let is_free = lock::try_lock(file).unwrap();
        let _ = is_free.then(|| lock::unlock(file).unwrap());
        is_free
    };
    let first = open("-gate");
    for _ in 0..3 {
        pass(&mut other);
        let second = open("-gate2");
        assert!(!is_free(&second), "others take turns at the second file");
        other.leave();
        assert!(is_free(&second));
        assert!(!is_free(&first), "the holder lost the gate");
        std::thread::sleep(Duration::from_millis(100));
    }
    holder.leave();
    // The thread of the other gate still waited, and must not keep what nobody awaits.
    lock::lock(&first).unwrap();
    lock::unlock(&first).unwrap();
    std::thread::sleep(Duration::from_secs(1));
    pass(&mut other);
    assert!(!is_free(&first), "the first file is used again");
    other.leave();
    assert!(is_free(&first));
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
    let (mut free, mut beside_stopped) = ([0; 2], [0; 2]);
    let count = |sums: &mut [usize; 2]| sums.iter_mut().zip(steps()).for_each(|(sum, steps)| *sum += steps);
    for _ in 0..ROUNDS {
        held.recv().unwrap();
        holder.freeze();
        count(&mut beside_stopped);
        holder.thaw();
        holder.tell("leave");
        held.recv().unwrap();
        count(&mut free);
        holder.tell("hold");
    }
    let [beside_stopped_sum, free_sum] = [beside_stopped, free].map(|each| each.iter().sum::<usize>());
    // A quiet host keeps nearly nine tenths. If each step waited for its time-out of 20 ms, less than a
    // fiftieth would be left.
    assert!(
        beside_stopped_sum * 5 >= free_sum,
        "beside a stopped process {beside_stopped:?}, without {free:?}"
    );
    let least = *beside_stopped.iter().min().unwrap();
    assert!(least * 10 > beside_stopped_sum, "each is served: {beside_stopped:?}");
}
