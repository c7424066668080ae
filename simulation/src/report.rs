//! What a hunt found, for people and for programs.

use std::{collections::BTreeMap, ops::Range, time::Duration};

use interval_queue_sim::{Fault, Outcome, Plan, SABOTAGES, Violation};
use serde_json::json;

/// How much of the journal is shown around a violation.
pub(crate) const AROUND: usize = 40;

/// All outcomes together.
#[derive(Default)]
pub(crate) struct Summary {
    simulations: u64,
    jobs: u64,
    started: u64,
    slots: u64,
    early: u64,
    time: Duration,
    faults: BTreeMap<Fault, u64>,
    pub(crate) found: Option<(u64, Violation)>,
}

impl Summary {
    pub(crate) fn add(&mut self, plan: &Plan, outcome: Outcome) {
        self.simulations += 1;
        self.jobs += plan.jobs() as u64;
        self.started += outcome.started;
        self.slots += outcome.slots;
        self.early += outcome.early;
        self.time += outcome.time;
        for (fault, count) in plan.faults() {
            *self.faults.entry(fault).or_default() += count;
        }
        self.found = self.found.take().or(outcome.violation.map(|violation| (plan.seed, violation)));
    }
}

pub(crate) fn summary(total: &Summary, seeds: &Range<u64>, words: &str, took: Duration) {
    println!("interval-queue-sim run --seeds {}..{} {words}", seeds.start, seeds.end);
    let verdict = if total.found.is_some() { "a promise was broken" } else { "no promise was broken" };
    println!("{} simulations in {:.1} s: {verdict}", total.simulations, took.as_secs_f64());
    let ratio = total.time.as_secs_f64() / took.as_secs_f64().max(0.001);
    println!("{:.0} s of simulated time, {ratio:.0} times as fast as real time", total.time.as_secs_f64());
    println!("{} jobs added, {} started in {} granted slots", total.jobs, total.started, total.slots);
    println!("{} starts early after a loss of state, as promised", total.early);
    for (fault, count) in &total.faults {
        println!("  {:<13} {count:>10}", fault.name());
    }
}

pub(crate) fn json(total: &Summary, seeds: &Range<u64>, words: &str, took: Duration) -> String {
    let faults: serde_json::Map<_, _> =
        total.faults.iter().map(|(fault, count)| (fault.name().to_owned(), (*count).into())).collect();
    json!({
        "command": format!("interval-queue-sim run --seeds {}..{} {words}", seeds.start, seeds.end),
        "simulations": total.simulations,
        "seconds": took.as_secs_f64(),
        "simulated_seconds": total.time.as_secs_f64(),
        "jobs": total.jobs,
        "started": total.started,
        "slots": total.slots,
        "early": total.early,
        "faults": faults,
        "violation": total.found.as_ref().map(|(seed, violation)| json!({ "seed": seed, "what": violation.to_string() })),
    })
    .to_string()
}

/// Lists what `--faults` and `--sabotage` take.
pub(crate) fn faults() -> bool {
    println!("faults:");
    for fault in Fault::ALL {
        println!("  {:<13} {}", fault.name(), fault.what());
    }
    println!("\nrules that can be broken on purpose with --sabotage:");
    for sabotage in SABOTAGES {
        println!("  {:<13} {}", sabotage.name, sabotage.what);
    }
    true
}
