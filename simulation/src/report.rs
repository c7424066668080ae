//! The result of a search, for people and for programs.

use std::{collections::BTreeMap, ops::Range, time::Duration};

use interval_queue_sim::{Fault, SABOTAGES, Violation, tasks};
use serde_json::json;

use crate::subject::SimulationResult;

pub(crate) const MAX_SHOWN_ENTRIES: usize = 40;

#[derive(Default)]
pub(crate) struct Summary {
    simulations: u64,
    time: Duration,
    counts: BTreeMap<&'static str, u64>,
    faults: BTreeMap<Fault, u64>,
    pub(crate) found: Option<(u64, Violation)>,
}

impl Summary {
    pub(crate) fn add(&mut self, seed: u64, result: SimulationResult) {
        self.simulations += 1;
        self.time += result.time;
        for (what, count) in result.counts {
            *self.counts.entry(what).or_default() += count;
        }
        for (fault, count) in result.faults {
            *self.faults.entry(fault).or_default() += count;
        }
        self.found = self.found.take().or(result.violation.map(|violation| (seed, violation)));
    }

    fn count(&self, what: &str) -> u64 {
        self.counts.get(what).copied().unwrap_or_default()
    }
}

pub(crate) fn summary(total: &Summary, seeds: &Range<u64>, words: &str, took: Duration) {
    println!("interval-queue-sim run --seeds {}..{} {words}", seeds.start, seeds.end);
    let verdict = if total.found.is_some() { "a promise was broken" } else { "no promise was broken" };
    println!("{} simulations in {:.1} s: {verdict}", total.simulations, took.as_secs_f64());
    let ratio = total.time.as_secs_f64() / took.as_secs_f64().max(0.001);
    println!("{:.0} s of simulated time, {ratio:.0} times as fast as real time", total.time.as_secs_f64());
    let count = |what| total.count(what);
    if total.counts.contains_key("tasks") {
        println!(
            "{} tasks stored, {} runs begun, {} steps of workers",
            count("tasks"),
            count("runs"),
            count("steps")
        );
    } else {
        println!(
            "{} jobs added, {} started in {} granted slots",
            count("jobs"),
            count("started"),
            count("slots")
        );
        println!("{} starts early after a loss of state, as promised", count("early"));
    }
    for (fault, count) in &total.faults {
        println!("  {:<13} {count:>10}", fault.name());
    }
}

pub(crate) fn json(total: &Summary, seeds: &Range<u64>, words: &str, took: Duration) -> String {
    let faults: serde_json::Map<_, _> =
        total.faults.iter().map(|(fault, count)| (fault.name().to_owned(), (*count).into())).collect();
    let mut all = json!({
        "command": format!("interval-queue-sim run --seeds {}..{} {words}", seeds.start, seeds.end),
        "simulations": total.simulations,
        "seconds": took.as_secs_f64(),
        "simulated_seconds": total.time.as_secs_f64(),
        "faults": faults,
        "violation": total.found.as_ref().map(|(seed, violation)| json!({ "seed": seed, "what": violation.to_string() })),
    });
    for (what, count) in &total.counts {
        all[*what] = (*count).into();
    }
    all.to_string()
}

pub(crate) fn faults() -> bool {
    println!("faults:");
    for fault in Fault::ALL {
        println!("  {:<13} {}", fault.name(), fault.what());
    }
    println!("\nrules that can be broken on purpose with --sabotage:");
    for sabotage in SABOTAGES {
        println!("  {:<13} {}", sabotage.name, sabotage.what);
    }
    println!("\nand of stored tasks, with --tasks:");
    for sabotage in tasks::SABOTAGES {
        println!("  {:<19} {}", sabotage.name, sabotage.what);
    }
    true
}
