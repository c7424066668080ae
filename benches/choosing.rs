//! What a state costs, to choose one by: the tables of docs/states.md.
//!
//!     cargo bench --quiet --bench choosing > docs/states.md
//!
//! Rounds go over all states in turn, so that whatever else the machine does befalls all alike; medians are
//! shown.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a benchmark that fails says so")]
#![allow(clippy::disallowed_methods, reason = "it measures time")]

mod common;
#[path = "tasks/hand.rs"]
#[allow(dead_code, reason = "it uses some of it")]
mod hand;

use std::{
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

use interval_queue_contract::{Command, Micros, QueueName, SharedState};
use tokio::runtime::Runtime;

use common::{
    commands::{self, Speaker},
    places::Backend,
    rivals::{self, Rivals},
};
use hand::Hand;

const ROUNDS: usize = 5;
/// How many commands are timed in a round.
const TIMED: usize = 400;
/// For how long the commands of all processes are counted in a round.
const COUNTED: Duration = Duration::from_secs(2);
const PROCESSES: usize = 4;
const HEADER: &str = "\
# What a state costs

`cargo bench --quiet --bench choosing > docs/states.md` makes this page again, on the machine at hand; servers are on the same one.

A *step* takes a ticket and starts with it, as a job on an idle queue does; in a queue under load a job costs about two commands. A *look* reads
the record, as `status` does. Medians, and in brackets the 99th percentile. Then four processes give steps to one queue, one
after the other each, as fast as they are answered; the least share is that of the process with the fewest, where 25 % is fair.
";
/// Bytes of a payload.
const PAYLOAD: usize = 100;
/// How many tasks a larger command has.
const BATCH: usize = 100;
const TASKS_HEADER: &str = "
## Stored tasks

What a command on stored tasks takes where nobody else is at work: to *add* one task, or 100 of them at once, with a payload of 100 bytes each; and
to *run* one, or 100 at once, which is a step that completes what the one before has leased and leases as many. Medians, and in brackets the
99th percentile. What many processes reach, and what it costs the server, is in [benchmarks.md](benchmarks.md#stored-tasks).

| store | add one, µs | add 100, µs a task | run one, µs | run 100, µs a task |
|---|---:|---:|---:|---:|
";

fn main() {
    rivals::work_if_copy(&queue());
    let (rounds, timed) = if common::is_dry() { (1, 5) } else { (ROUNDS, TIMED) };
    let runtime = common::runtime();
    let mut measured: Vec<Measured> =
        Backend::all().into_iter().map(|place| Measured::new(&runtime, place)).collect();
    for _ in 0..rounds {
        for state in &mut measured {
            state.round(&runtime, timed);
        }
    }
    println!("{HEADER}");
    println!("| state | a step, µs | a look, µs | steps a second, four processes | least share |");
    println!("|---|---:|---:|---:|---:|");
    for state in &mut measured {
        println!("{state}");
    }
    drop(measured);

    let mut stores: Vec<Tasks> =
        Backend::of_tasks().into_iter().map(|place| Tasks::new(&runtime, place)).collect();
    for _ in 0..rounds {
        for store in &mut stores {
            store.round(&runtime, timed);
        }
    }
    print!("{TASKS_HEADER}");
    for store in &stores {
        println!("{store}");
    }
}

fn queue() -> QueueName {
    QueueName::new("start").unwrap()
}

/// A state, and what was found.
struct Measured {
    place: Backend,
    state: Arc<dyn SharedState>,
    speaker: Speaker,
    steps: Vec<Duration>,
    looks: Vec<Duration>,
    rates: Vec<f64>,
    least: Vec<f64>,
}

impl Measured {
    fn new(runtime: &Runtime, place: Backend) -> Self {
        let state = runtime.block_on(async {
            let state = place.open().await;
            // The shard that takes a ticket may start with it.
            state.apply(&queue(), commands::open(Micros::new(1))).await.unwrap();
            state
        });
        let speaker = Speaker::new("measured");
        Self { place, state, speaker, steps: vec![], looks: vec![], rates: vec![], least: vec![] }
    }

    fn round(&mut self, runtime: &Runtime, timed: usize) {
        let Self { state, speaker, .. } = self;
        let time = |into: &mut Vec<Duration>, make: &mut dyn FnMut() -> Command| {
            for _ in 0..timed {
                let command = make();
                let began = Instant::now();
                runtime.block_on(state.apply(&queue(), command)).unwrap();
                into.push(began.elapsed());
            }
        };
        time(&mut self.steps, &mut || speaker.step([], 1, 1));
        time(&mut self.looks, &mut || Command::Read);
        if let Some(address) = self.place.address().filter(|_| !common::is_dry()) {
            let mut rivals = Rivals::start(PROCESSES, &address);
            let before = rivals.commands();
            let began = Instant::now();
            std::thread::sleep(COUNTED);
            let counts: Vec<u64> =
                rivals.commands().into_iter().zip(before).map(|(after, before)| after - before).collect();
            let sum = counts.iter().sum::<u64>() as f64;
            self.rates.push(sum / began.elapsed().as_secs_f64());
            self.least.push(100.0 * *counts.iter().min().unwrap() as f64 / sum);
        }
    }
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (steps, looks) = (micros(&self.steps, 1), micros(&self.looks, 1));
        write!(f, "| {} | {steps} | {looks} | ", self.place.name)?;
        match (median(&self.rates), median(&self.least)) {
            (Some(rate), Some(least)) => write!(f, "{} | {least:.0} % |", rounded(rate)),
            _ => f.write_str("– | – |"),
        }
    }
}

/// Stored tasks in a place, and how long their commands took.
struct Tasks {
    place: Backend,
    hand: Hand,
    /// By how many tasks a command has.
    adds: [Vec<Duration>; 2],
    runs: [Vec<Duration>; 2],
}

impl Tasks {
    fn new(runtime: &Runtime, place: Backend) -> Self {
        let url = place.address().unwrap_or_else(|| "memory:".into());
        Self {
            place,
            hand: runtime.block_on(Hand::at(&url)),
            adds: Default::default(),
            runs: Default::default(),
        }
    }

    /// So many tasks by themselves, and four times as many together.
    fn round(&mut self, runtime: &Runtime, timed: usize) {
        let Self { hand, adds, runs, .. } = self;
        for ((batch, adds), runs) in [1, BATCH].into_iter().zip(adds).zip(runs) {
            let commands = if batch == 1 { timed } else { timed.div_ceil(BATCH / 4) };
            for _ in 0..commands {
                let began = Instant::now();
                runtime.block_on(hand.add(batch, PAYLOAD, &[]));
                adds.push(began.elapsed());
            }
            runtime.block_on(hand.tidy());
            // What was leased by the first is completed by the second.
            assert_eq!(runtime.block_on(hand.step(batch)), batch);
            for _ in 1..commands {
                let began = Instant::now();
                assert_eq!(runtime.block_on(hand.step(batch)), batch);
                runs.push(began.elapsed());
            }
            runtime.block_on(hand.tidy());
        }
    }
}

impl fmt::Display for Tasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [add, add_many] = &self.adds;
        let [run, run_many] = &self.runs;
        let (add, run) = (micros(add, 1), micros(run, 1));
        let (add_many, run_many) = (micros(add_many, BATCH), micros(run_many, BATCH));
        write!(f, "| {} | {add} | {add_many} | {run} | {run_many} |", self.place.name)
    }
}

/// The median and the 99th percentile, for each of so many that were done at once.
fn micros(times: &[Duration], many: usize) -> String {
    let mut times: Vec<f64> = times.iter().map(|time| time.as_secs_f64() * 1e6 / many as f64).collect();
    times.sort_by(f64::total_cmp);
    format!("{} ({})", rounded(times[times.len() / 2]), rounded(times[times.len() * 99 / 100]))
}

fn median(values: &[f64]) -> Option<f64> {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// Two digits: more would say what no second run says.
fn rounded(value: f64) -> String {
    if value < 10.0 {
        return format!("{value:.1}");
    }
    let unit = 10_f64.powi(value.log10().floor() as i32 - 1);
    format!("{}", (value / unit).round() * unit)
}
