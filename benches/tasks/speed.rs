//! How many tasks a second four processes add, lease and settle together.

use std::{
    env,
    process::Stdio,
    time::{Duration, Instant},
};

use clap::Args;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    process::{Child, Command},
};

use crate::{
    figures::{figure, median},
    place::{Hand, Place},
    process::cpu,
};

const PROCESSES: usize = 4;
/// So many are added in one command.
const ADDED: usize = 1_000;

/// A process that adds some tasks and leases as many, again and again. It begins at a line on its standard input.
#[derive(Clone, Debug, Args)]
pub(crate) struct Crew {
    url: String,
    /// How many a step settles and leases.
    batch: usize,
    /// How many in all.
    tasks: usize,
}

impl Crew {
    pub(crate) async fn work(self) {
        let mut hand = Hand::at(&self.url).await;
        println!("ready");
        BufReader::new(tokio::io::stdin()).read_line(&mut String::new()).await.unwrap();
        let before = cpu();
        let batch = u32::try_from(self.batch).unwrap();
        let added = ADDED.max(self.batch).min(self.tasks);
        for _ in 0..self.tasks / added {
            hand.add(added).await;
            for _ in 0..added / self.batch {
                hand.step(batch).await;
            }
        }
        // What others have added and nobody has yet.
        while hand.step(batch).await > 0 {}
        println!("{}", cpu() - before);
    }
}

struct Found {
    rate: f64,
    cpu: f64,
}

async fn once(is_full: bool, batch: usize, tasks: usize) -> Found {
    let place = Place::new(is_full);
    let start = || {
        let mut command = Command::new(env::current_exe().unwrap());
        command.arg("speed").arg(&place.url).arg(batch.to_string()).arg((tasks / PROCESSES).to_string());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true).spawn().unwrap()
    };
    let mut crew: Vec<Child> = (0..PROCESSES).map(|_| start()).collect();
    let mut lines = Vec::new();
    for child in &mut crew {
        let mut said = BufReader::new(child.stdout.take().unwrap()).lines();
        assert_eq!(said.next_line().await.unwrap().unwrap(), "ready");
        lines.push(said);
    }
    let began = Instant::now();
    for child in &mut crew {
        child.stdin.take().unwrap().write_all(b"\n").await.unwrap();
    }
    let mut used = 0.0;
    for said in &mut lines {
        used += said.next_line().await.unwrap().unwrap().parse::<f64>().unwrap();
    }
    let took = began.elapsed().max(Duration::from_micros(1));
    Found { rate: tasks as f64 / took.as_secs_f64(), cpu: used * 1e6 / tasks as f64 }
}

pub(crate) async fn measure(runs: u32, share: usize) {
    let cases = [
        (false, 1, 40_000),
        (false, 10, 200_000),
        (false, 100, 400_000),
        (true, 1, 4_000),
        (true, 10, 40_000),
        (true, 100, 200_000),
    ];
    let mut found: Vec<Vec<Found>> = cases.iter().map(|_| Vec::new()).collect();
    for _ in 0..runs {
        for (&(is_full, batch, tasks), found) in cases.iter().zip(&mut found) {
            let least = if share == 1 { ADDED * PROCESSES } else { batch * PROCESSES };
            found.push(once(is_full, batch, (tasks / share).max(least) / least * least).await);
        }
    }
    println!(
        "Four processes add tasks with payloads of 100 bytes, {ADDED} at a time, lease and settle them, on one SQLite database:\n"
    );
    println!("| durability | tasks in a step | tasks a second | CPU per task, µs |\n|---|---:|---:|---:|");
    for ((is_full, batch, _), found) in cases.iter().zip(&found) {
        let durability = if *is_full { "full" } else { "relaxed" };
        let rate = median(found.iter().map(|found| found.rate)).unwrap();
        let cpu = median(found.iter().map(|found| found.cpu)).unwrap();
        println!("| {durability} | {batch} | {} | {} |", figure(rate), figure(cpu));
    }
    println!();
}
