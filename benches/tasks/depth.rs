//! What a step and a count cost with nothing stored, with a million tasks that are ready, and with a million that have
//! ended; and how much memory a worker has then.

use std::time::Instant;

use interval_queue::task_contract::{Command, Read};

use crate::{
    figures::{figure, median},
    place::{Hand, Place},
    process::memory,
};

const TASKS: usize = 1_000_000;
/// In one command.
const BATCH: usize = 10;
/// So many steps are measured.
const STEPS: usize = 500;

struct Found {
    step: f64,
    counts: f64,
    memory: f64,
}

/// Microseconds of what is done.
async fn timed<T>(what: impl Future<Output = T>) -> f64 {
    let began = Instant::now();
    what.await;
    began.elapsed().as_secs_f64() * 1e6
}

async fn look(hand: &mut Hand) -> Found {
    let (mut steps, mut counts) = (Vec::new(), Vec::new());
    for _ in 0..STEPS {
        hand.add(BATCH).await;
        steps.push(timed(hand.step(BATCH as u32)).await);
    }
    for _ in 0..STEPS / 10 {
        counts.push(timed(hand.apply(Command::Read(Read::Overview))).await);
    }
    Found { step: median(steps).unwrap(), counts: median(counts).unwrap(), memory: memory() }
}

pub(crate) async fn measure(runs: u32, share: usize) {
    let names = ["nothing", "ready", "ended"];
    let mut found: [Vec<Found>; 3] = Default::default();
    let tasks = TASKS / share;
    for _ in 0..runs {
        let place = Place::new(false);
        let mut hand = Hand::at(&place.url).await;
        found[0].push(look(&mut hand).await);
        for _ in 0..tasks / 1_000 {
            hand.add(1_000).await;
        }
        found[1].push(look(&mut hand).await);
        while hand.step(1_000).await > 0 {}
        found[2].push(look(&mut hand).await);
    }
    println!("## A full table\n");
    println!("One process with {tasks} tasks stored; a step settles ten and leases ten:\n");
    println!(
        "| stored | a step, µs | against nothing | counts, µs | memory, MB |\n|---|---:|---:|---:|---:|"
    );
    let middle = |found: &[Found], of: fn(&Found) -> f64| median(found.iter().map(of)).unwrap();
    for (name, found_here) in names.iter().zip(&found) {
        let (step, counts) =
            (middle(found_here, |found| found.step), middle(found_here, |found| found.counts));
        let ratio = step / middle(&found[0], |found| found.step);
        let memory = middle(found_here, |found| found.memory) / 1e6;
        println!("| {name} | {} | {ratio:.2} | {} | {} |", figure(step), figure(counts), figure(memory));
    }
    println!();
}
