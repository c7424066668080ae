//! The page, section by section.

use std::collections::BTreeSet;

use crate::{
    BrokenRule, Recovery, Report, Row, SimulationRun,
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
    let rows = [
        ["on".into(), machine.date.clone()],
        ["by".into(), machine.command.clone()],
        ["system".into(), format!("{}, {} cores", machine.system, machine.cores)],
        ["compiler".into(), machine.rustc.clone()],
        ["servers".into(), machine.servers.clone()],
    ];
    format!("# Reliability\n\n{what}\n{how}\n{}", Table::text(["made", ""], rows))
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
    let rows = rows.map(|(name, pick)| [name.into(), pick(schedules), pick(&simulation.large)]);
    let figures = Table::text(["", "many small schedules", "a large one"], rows);
    let early = paragraph(
        "Jobs that were cancelled or whose shard was killed never start. An early start is one that G9 allows after a \
         loss of the record, or that follows a step of the clock.",
    );
    let faults = simulation.faults.iter().map(|fault| {
        let count = |run: &SimulationRun| counted(run.faults.get(&fault.name).copied().unwrap_or_default());
        [fault.name.clone(), fault.what.clone(), count(schedules), count(&simulation.large)]
    });
    let faults = Table::text(["fault", "what it does", "injected", "in the large one"], faults);
    let again = format!("```text\n{}\n{}\n```\n", schedules.command, simulation.large.command);
    let again = format!("To run the same schedules again:\n\n{again}");
    format!("## Simulation\n\n{what}\n{figures}\n{early}\n{faults}\n{again}")
}

fn broken_rules(report: &Report) -> String {
    let what = paragraph(
        "A search that finds nothing proves nothing unless it finds what is there. Here each of these rules was broken on \
         purpose, and the simulation was run until it saw a promise broken.",
    );
    let rules = report.simulation.broken_rules.iter().map(|BrokenRule { rule, run }| {
        let found = run.violation.as_ref().map_or(String::new(), |violation| violation.what.clone());
        let seconds = format!("{:.3}", run.seconds);
        [rule.name.clone(), rule.what.clone(), counted(run.simulations), seconds, found]
    });
    let titles = ["rule", "what is wrong", "schedules", "seconds", "the promise that broke"];
    format!("## Broken rules are found\n\n{what}\n{}", Table::text(titles, rules))
}

fn model(report: &Report) -> String {
    let (flaws, sound): (Vec<&Row>, Vec<&Row>) = report.model.iter().partition(|row| row.is_flaw());
    let states: u64 = sound.iter().map(|row| row.injected).sum();
    let what = paragraph(&format!(
        "The real rules and the real line of a shard, explored in every state that a few shards can reach, whatever happens next and in whichever \
         order: {} states in {} setups, each setup explored to its end.",
        counted(states),
        sound.len()
    ));
    let table = |titles, rows: Vec<&Row>| {
        let cells = |row: &Row| [row.fault.clone(), counted(row.injected), row.happened.clone()];
        Table::text(titles, rows.into_iter().map(cells))
    };
    let wrong = paragraph(
        "Wrong variants of the rules and of the shards must be refuted. Each was, in this shortest way; A and B are shards, \
         and instants are counted in ticks of the model.",
    );
    let right = table(["setup", "states", "result"], sound);
    let flaws = table(["wrong variant", "states", "shortest counterexample"], flaws);
    format!("## Model check\n\n{what}\n{right}\n{wrong}\n{flaws}")
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
    for place in rows.iter().map(|row| &row.place).collect::<BTreeSet<_>>() {
        let faults = rows.iter().filter(|row| row.place == *place).map(|row| {
            let time = |time: fn(Recovery) -> f64| row.recovery_ms.map(|ms| format!("{:.1}", time(ms)));
            let [median, longest] =
                [time(|ms| ms.median), time(|ms| ms.longest)].map(Option::unwrap_or_default);
            let (fault, promised) = (row.fault.clone(), row.promised.clone());
            [fault, counted(row.injected), promised, row.happened.clone(), median, longest]
        });
        let titles = ["fault", "injected", "promised", "what happened", "median", "longest"];
        text += &format!("\n### {place}\n\n{}", Table::text(titles, faults));
    }
    text
}

fn fuzz(report: &Report) -> String {
    let what = paragraph(
        "Every parser of what comes from outside gets inputs that are kept, and many more made of them. Promised is: \
         refused with a clear error, never a panic, nothing overwritten.",
    );
    let parsers =
        report.fuzz.iter().map(|row| [row.place.clone(), counted(row.injected), row.happened.clone()]);
    format!("## Malformed input\n\n{what}\n{}", Table::text(["parser of", "inputs", "result"], parsers))
}

/// A length of time in a unit that people can imagine.
fn length(seconds: f64) -> String {
    const UNITS: [(&str, f64); 4] =
        [("years", 365.0 * 86_400.0), ("days", 86_400.0), ("hours", 3_600.0), ("minutes", 60.0)];
    let unit = UNITS.into_iter().find(|(_, unit)| seconds >= 2.0 * unit);
    unit.map_or(format!("{seconds:.1} seconds"), |(name, unit)| format!("{:.1} {name}", seconds / unit))
}
