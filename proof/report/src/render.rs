//! The page, section by section.

use std::collections::BTreeSet;

use crate::{
    BrokenRule, Half, Layer, Machine, Recovery, Report, Row, Simulation, SimulationRun,
    promises::promises,
    table::{Table, counted, paragraph},
    words::{Words, words},
};

/// What nobody measured: written by hand.
const NOT_PROMISED: &str = include_str!("not_promised.md");

/// The page in Markdown.
pub fn render(report: &Report) -> String {
    let halves: Vec<_> = [Layer::Pace, Layer::Tasks]
        .into_iter()
        .filter_map(|layer| report.half(layer).map(|half| (layer, half)))
        .collect();
    let mut page = beginning();
    for &(layer, half) in &halves {
        page += &format!("\n{}", section(layer, half));
    }
    page + &format!("\n{}\n{NOT_PROMISED}", fuzz(halves.iter().flat_map(|(_, half)| &half.fuzz)))
}

fn beginning() -> String {
    let what = paragraph(
        "What the interval queue promises was attacked in four ways: by a simulation of whole systems, by a check of the rules in every \
         state that a few shards or workers can reach, by chaos on real processes and real servers, and by malformed input. \
         This page reports how often, and what happened: first to the pace, then to stored tasks. The last section states what \
         is not promised.",
    );
    let how = paragraph(
        "One command makes it: `scripts/reliability`. It runs everything anew, with seeds that nobody tried before, and \
         writes this page; if anything fails, the page stays as it was. It can make one half alone, so each says when and how \
         it was made. The figures themselves are in [reliability.json](reliability.json). Times are those of one machine; on \
         another they differ.",
    );
    let tiers = paragraph(
        "Before each change `.ci/run` runs the gate of the tests, with a short simulation, killed processes and every check \
         of a store, and one of the six parts of the long tier: chaos, the model check, more simulation, broken rules, malformed \
         input, fuzzing, all orders of two transactions. `scripts/test --long` runs both tiers whole.",
    );
    format!("# Reliability\n\n{what}\n{how}\n{tiers}")
}

fn section(layer: Layer, half: &Half) -> String {
    let words = words(layer);
    let mut lead = format!("## {}\n\n{}", words.title, paragraph(words.lead));
    if layer == Layer::Tasks {
        lead += &format!("\n{}", promises());
    }
    let parts = [
        lead,
        made(&half.machine),
        simulation(words, &half.simulation),
        broken_rules(&half.simulation),
        model(words, &half.model),
        chaos(words, &half.chaos),
    ];
    parts.join("\n")
}

fn made(machine: &Machine) -> String {
    let rows = [
        ["on".into(), machine.date.clone()],
        ["by".into(), machine.command.clone()],
        ["system".into(), format!("{}, {} cores", machine.system, machine.cores)],
        ["compiler".into(), machine.rustc.clone()],
        ["servers".into(), machine.servers.clone()],
    ];
    Table::text(["made", ""], rows)
}

fn simulation(words: &Words, simulation: &Simulation) -> String {
    let (schedules, large) = (&simulation.schedules, &simulation.large);
    let mut rows = Vec::new();
    let mut row = |name: &str, pick: &dyn Fn(&SimulationRun) -> String| {
        rows.push([name.to_owned(), pick(schedules), pick(large)]);
    };
    row("schedules", &|run| counted(run.simulations));
    row("promises broken", &|run| u32::from(run.violation.is_some()).to_string());
    row("faults injected", &|run| counted(run.faults.values().sum()));
    for (key, name) in words.counts {
        row(name, &|run| counted(run.counts.get(*key).copied().unwrap_or_default()));
    }
    row("simulated time", &|run| length(run.simulated_seconds));
    row("real time", &|run| {
        let ratio = run.simulated_seconds / run.seconds.max(0.001);
        format!("{}, {} times as fast", length(run.seconds), counted(ratio as u64))
    });
    let (what, below) = (paragraph(words.simulation), paragraph(words.below_figures));
    let figures = Table::text(["", "many small schedules", "a large one"], rows);
    let faults = simulation.faults.iter().map(|fault| {
        let count = |run: &SimulationRun| counted(run.faults.get(&fault.name).copied().unwrap_or_default());
        [fault.name.clone(), fault.what.clone(), count(schedules), count(large)]
    });
    let faults = Table::text(["fault", "what it does", "injected", "in the large one"], faults);
    let again = format!("```text\n{}\n{}\n```\n", schedules.command, large.command);
    let again = format!("To run the same schedules again:\n\n{again}");
    format!("### Simulation\n\n{what}\n{figures}\n{below}\n{faults}\n{again}")
}

fn broken_rules(simulation: &Simulation) -> String {
    let what = paragraph(
        "A search that finds nothing proves nothing unless it finds what is there. Here each of these rules was broken on \
         purpose, and the simulation was run until it saw a promise broken.",
    );
    let rules = simulation.broken_rules.iter().map(|BrokenRule { rule, run }| {
        let found = run.violation.as_ref().map_or(String::new(), |violation| violation.what.clone());
        let seconds = format!("{:.3}", run.seconds);
        [rule.name.clone(), rule.what.clone(), counted(run.simulations), seconds, found]
    });
    let titles = ["rule", "what is wrong", "schedules", "seconds", "the promise that broke"];
    format!("### Broken rules are found\n\n{what}\n{}", Table::text(titles, rules))
}

fn model(words: &Words, rows: &[Row]) -> String {
    let (flaws, sound): (Vec<&Row>, Vec<&Row>) = rows.iter().partition(|row| row.is_flaw());
    let states: u64 = sound.iter().map(|row| row.injected).sum();
    let what = paragraph(&format!(
        "{}, whatever happens next and in whichever order: {} states in {} setups, each setup explored to its end.",
        words.model,
        counted(states),
        sound.len()
    ));
    let table = |titles, rows: Vec<&Row>| {
        let cells = |row: &Row| [row.fault.clone(), counted(row.injected), row.happened.clone()];
        Table::text(titles, rows.into_iter().map(cells))
    };
    let wrong = paragraph(words.flaws);
    let right = table(["setup", "states", "result"], sound);
    let flaws = table(["wrong variant", "states", "shortest counterexample"], flaws);
    format!("### Model check\n\n{what}\n{right}\n{wrong}\n{flaws}")
}

fn chaos(words: &Words, rows: &[Row]) -> String {
    let injected = counted(rows.iter().map(|row| row.injected).sum());
    let starts = counted(rows.iter().filter_map(|row| row.starts).sum());
    let Words { chaos, starts: started, recovery, .. } = words;
    let what = paragraph(&format!("{chaos}: {injected} injections, {starts} {started}. {recovery}"));
    let mut text = format!("### Chaos on real processes\n\n{what}");
    for place in rows.iter().map(|row| &row.place).collect::<BTreeSet<_>>() {
        let faults = rows.iter().filter(|row| row.place == *place).map(|row| {
            let time = |time: fn(Recovery) -> f64| row.recovery_ms.map(|ms| format!("{:.1}", time(ms)));
            let [median, longest] =
                [time(|ms| ms.median), time(|ms| ms.longest)].map(Option::unwrap_or_default);
            let (fault, promised) = (row.fault.clone(), row.promised.clone());
            [fault, counted(row.injected), promised, row.happened.clone(), median, longest]
        });
        let titles = ["fault", "injected", "promised", "what happened", "median", "longest"];
        text += &format!("\n#### {place}\n\n{}", Table::text(titles, faults));
    }
    text
}

fn fuzz<'a>(rows: impl Iterator<Item = &'a Row>) -> String {
    let what = paragraph(
        "Every parser of what comes from outside gets inputs that are kept, and many more made of them. Promised is: \
         refused with a clear error, never a panic, nothing overwritten.",
    );
    let parsers = rows.map(|row| [row.place.clone(), counted(row.injected), row.happened.clone()]);
    format!("## Malformed input\n\n{what}\n{}", Table::text(["parser of", "inputs", "result"], parsers))
}

/// A length of time in a unit that people can imagine.
fn length(seconds: f64) -> String {
    const UNITS: [(&str, f64); 4] =
        [("years", 365.0 * 86_400.0), ("days", 86_400.0), ("hours", 3_600.0), ("minutes", 60.0)];
    let unit = UNITS.into_iter().find(|(_, unit)| seconds >= 2.0 * unit);
    unit.map_or(format!("{seconds:.1} seconds"), |(name, unit)| format!("{:.1} {name}", seconds / unit))
}
