//! What a state costs, for who has to choose one: the tables of docs/states.md.
//!
//!     cargo bench --quiet --bench choosing > docs/states.md
//!
//! Rounds go over all states in turn, so that whatever else the machine does befalls all alike; medians are
//! shown.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a benchmark that fails says so")]
#![allow(clippy::disallowed_methods, reason = "it measures time")]

mod common;

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

const ROUNDS: usize = 5;
/// How many commands are timed in a round.
const TIMED: usize = 400;
/// For how long the commands of all processes are counted in a round.
const COUNTED: Duration = Duration::from_secs(2);
const PROCESSES: usize = 4;
const HEADER: &str = "\
# What a state costs

`cargo bench --quiet --bench choosing > docs/states.md` measures this page anew, on the machine at hand; servers are on the same one.

A *step* takes a ticket and starts with it, as a job on an idle queue does; in a queue under load a job costs about two commands. A *look* reads
the record, as `status` does. Medians, and in brackets the 99th percentile. Then four processes give steps to one queue, one
after the other each, as fast as they are answered; the least share is that of the process with the fewest, where 25 % is fair.
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
            // Whoever takes a ticket may start with it.
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
        let micros = |times: &[Duration]| {
            let mut times: Vec<f64> = times.iter().map(|time| time.as_secs_f64() * 1e6).collect();
            times.sort_by(f64::total_cmp);
            format!("{} ({})", rounded(times[times.len() / 2]), rounded(times[times.len() * 99 / 100]))
        };
        let (steps, looks) = (micros(&self.steps), micros(&self.looks));
        write!(f, "| {} | {steps} | {looks} | ", self.place.name)?;
        match (median(&self.rates), median(&self.least)) {
            (Some(rate), Some(least)) => write!(f, "{} | {least:.0} % |", rounded(rate)),
            _ => f.write_str("– | – |"),
        }
    }
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
