//! The page, section by section.

use std::fmt::Write as _;

use crate::{
    Report, Row, SimulationRun,
    table::{Table, counted, paragraph},
};

/// What nobody measured: written by hand.
const NOT_PROMISED: &str = include_str!("not_promised.md");

/// The page in Markdown.
pub fn render(report: &Report) -> String {
    let sections = [
        beginning(report),
        simulation(report),
        broken_rules(report),
        model(report),
        chaos(report),
        fuzz(report),
    ];
    format!("{}\n{NOT_PROMISED}", sections.join("\n"))
}

fn beginning(report: &Report) -> String {
    let machine = &report.machine;
    let what = paragraph(
        "What the interval queue promises (G1 to G10, see the [README](../README.md)) was attacked in four ways: by a simulation of \
         whole systems, by a check of the rules in every state that a few shards can reach, by chaos on real processes \
         and real servers, and by malformed input. This page tells how often, and what happened. The last section tells \
         what is not promised.",
    );
    let how = paragraph(
        "One command makes it: `scripts/reliability`. It runs everything anew, with seeds that nobody tried before, and \
         writes this page; if anything fails, the page stays as it was. The figures themselves are in \
         [reliability.json](reliability.json). Times are those of one machine; on another they differ.",
    );
    let table = Table::new(["made", ""])
        .row(["on".into(), machine.date.clone()])
        .row(["by".into(), machine.command.clone()])
        .row(["system".into(), format!("{}, {} cores", machine.system, machine.cores)])
        .row(["compiler".into(), machine.rustc.clone()])
        .row(["servers".into(), machine.servers.clone()]);
    format!("# Reliability\n\n{what}\n{how}\n{}", table.text())
}

fn simulation(report: &Report) -> String {
    let simulation = &report.simulation;
    let schedules = &simulation.schedules;
    let what = paragraph(
        "Shards, as applications use them, run in virtual time against a state, a network and clocks that fail at \
         random, and every promise is checked after every event. Each schedule is another mixture of the faults below, \
         and a seed repeats it exactly. A schedule goes on until all is healed; then every job of the living must have \
         started and nothing may be left behind.",
    );
    let runs = [("many small schedules", schedules), ("a large one", &simulation.large)];
    let row = |pick: fn(&SimulationRun) -> String| runs.map(|(_, run)| pick(run));
    let mut figures = Table::new(["", runs[0].0, runs[1].0]);
    type Figure = (&'static str, fn(&SimulationRun) -> String);
    let rows: [Figure; 9] = [
        ("schedules", |run| counted(run.simulations)),
        ("promises broken", |run| u32::from(run.violation.is_some()).to_string()),
        ("faults injected", |run| counted(run.faults.values().sum())),
        ("jobs added", |run| counted(run.jobs)),
        ("jobs started", |run| counted(run.started)),
        ("slots granted", |run| counted(run.slots)),
        ("early starts, as promised", |run| counted(run.early)),
        ("simulated time", |run| length(run.simulated_seconds)),
        ("real time", |run| {
            let ratio = run.simulated_seconds / run.seconds.max(0.001);
            format!("{}, {} times as fast", length(run.seconds), counted(ratio as u64))
        }),
    ];
    for (name, pick) in rows {
        let [small, large] = row(pick);
        figures = figures.row([name.into(), small, large]);
    }
    let early = paragraph(
        "Jobs that were cancelled or whose shard was killed never start. An early start is one that G9 allows after a \
         loss of the record, or that follows a step of the clock.",
    );
    let faults = Table::new(["fault", "what it does", "injected", "in the large one"]).rows(
        simulation.faults.iter().map(|fault| {
            let count =
                |run: &SimulationRun| counted(run.faults.get(&fault.name).copied().unwrap_or_default());
            [fault.name.clone(), fault.what.clone(), count(schedules), count(&simulation.large)]
        }),
    );
    let again = format!("```text\n{}\n{}\n```\n", schedules.command, simulation.large.command);
    let again = format!("To run the same schedules again:\n\n{again}");
    format!("## Simulation\n\n{what}\n{}\n{early}\n{}\n{again}", figures.text(), faults.text())
}

fn broken_rules(report: &Report) -> String {
    let what = paragraph(
        "A search that finds nothing proves nothing unless it finds what is there. Here each of these rules was broken on \
         purpose, and the simulation was run until it saw a promise broken.",
    );
    let rules = &report.simulation.broken_rules;
    let table = Table::new(["rule", "what is wrong", "schedules", "seconds", "the promise that broke"]).rows(
        rules.iter().map(|broken| {
            let run = &broken.run;
            let found = run.violation.as_ref().map_or(String::new(), |violation| violation.what.clone());
            let seconds = format!("{:.3}", run.seconds);
            [broken.rule.name.clone(), broken.rule.what.clone(), counted(run.simulations), seconds, found]
        }),
    );
    format!("## Broken rules are found\n\n{what}\n{}", table.text())
}

fn model(report: &Report) -> String {
    let (flaws, sound): (Vec<&Row>, Vec<&Row>) = report.model.iter().partition(|row| row.is_flaw());
    let states: u64 = sound.iter().map(|row| row.injected).sum();
    let what = paragraph(&format!(
        "The real rules, explored in every state that a few shards can reach, whatever happens next and in whichever \
         order: {} states in {} setups, each setup explored to its end.",
        counted(states),
        sound.len()
    ));
    let right = Table::new(["setup", "states", "result"])
        .rows(sound.iter().map(|row| [row.fault.clone(), counted(row.injected), row.happened.clone()]));
    let wrong = paragraph(
        "Wrong variants of the rules and of the shards must be refuted. Each was, in this shortest way; A and B are shards, \
         and instants are counted in ticks of the model.",
    );
    let flaws = Table::new(["wrong variant", "states", "shortest counterexample"])
        .rows(flaws.iter().map(|row| [row.fault.clone(), counted(row.injected), row.happened.clone()]));
    format!("## Model check\n\n{what}\n{}\n{wrong}\n{}", right.text(), flaws.text())
}

fn chaos(report: &Report) -> String {
    let rows = &report.chaos;
    let injected = counted(rows.iter().map(|row| row.injected).sum());
    let starts = counted(rows.iter().filter_map(|row| row.starts).sum());
    let what = paragraph(&format!(
        "Real processes share a real state while processes, servers, network, disk and clock are killed, stopped, cut \
         off, filled up and set wrong: {injected} injections, {starts} jobs started. Recovery is the time from the end of \
         the fault to the next start of another process, in milliseconds; it includes the wait for that start's slot.",
    ));
    let mut text = format!("## Chaos on real processes\n\n{what}");
    for place in places(rows) {
        let table = Table::new(["fault", "injected", "promised", "what happened", "median", "longest"]).rows(
            rows.iter().filter(|row| row.place == place).map(|row| {
                let time = |pick: fn(&crate::Recovery) -> f64| {
                    row.recovery_ms
                        .as_ref()
                        .map_or(String::new(), |recovery| format!("{:.1}", pick(recovery)))
                };
                let (median, longest) = (time(|time| time.median), time(|time| time.longest));
                let (fault, promised) = (row.fault.clone(), row.promised.clone());
                [fault, counted(row.injected), promised, row.happened.clone(), median, longest]
            }),
        );
        let _ = write!(text, "\n### {place}\n\n{}", table.text());
    }
    text
}

fn places(rows: &[Row]) -> Vec<&str> {
    let mut places: Vec<_> = rows.iter().map(|row| row.place.as_str()).collect();
    places.sort_unstable();
    places.dedup();
    places
}

fn fuzz(report: &Report) -> String {
    let what = paragraph(
        "Every parser of what comes from outside gets inputs that are kept, and many more made of them. Promised is: \
         refused with a clear error, never a panic, nothing overwritten.",
    );
    let table = Table::new(["parser of", "inputs", "result"])
        .rows(report.fuzz.iter().map(|row| [row.place.clone(), counted(row.injected), row.happened.clone()]));
    format!("## Malformed input\n\n{what}\n{}", table.text())
}

/// A length of time in a unit that people can imagine.
fn length(seconds: f64) -> String {
    const UNITS: [(&str, f64); 4] =
        [("years", 365.0 * 86_400.0), ("days", 86_400.0), ("hours", 3_600.0), ("minutes", 60.0)];
    let unit = UNITS.into_iter().find(|(_, unit)| seconds >= 2.0 * unit);
    unit.map_or(format!("{seconds:.1} seconds"), |(name, unit)| format!("{:.1} {name}", seconds / unit))
}
