//! Reads a directory of evidence. What is missing, malformed or tells of a broken promise makes no page.

use std::{collections::BTreeSet, fs, io, path::Path};

use serde::de::DeserializeOwned;

use crate::{BrokenRule, Half, Layer, Machine, Named, Row, Simulation, SimulationRun};

/// Why there is no report: one line that names the file and what is wrong with it.
type Found<T> = Result<T, String>;

/// Where the evidence of a layer comes from.
struct Sources {
    model: (&'static str, &'static str),
    chaos: (&'static str, &'static str),
    fuzz: (&'static str, &'static str),
    /// What the simulation counts.
    counts: &'static [&'static str],
}

fn sources(layer: Layer) -> Sources {
    let fuzz = ("fuzz", "cargo test -p interval-queue-fuzz-bodies");
    match layer {
        Layer::Pace => Sources {
            model: ("model", "cargo test -p interval-queue-model"),
            chaos: ("chaos", "scripts/test -p interval-queue --test chaos"),
            fuzz,
            counts: &["early", "jobs", "slots", "started"],
        },
        Layer::Tasks => Sources {
            model: ("task-model", "cargo test -p interval-queue-model"),
            chaos: ("task-chaos", "scripts/test -p interval-queue-cli --test chaos"),
            fuzz,
            counts: &["runs", "steps", "tasks"],
        },
    }
}

/// Reads all evidence of a layer in the directory.
///
/// # Errors
///
/// Something is missing, is not what such a run writes, or a promise was broken.
pub fn collect(directory: &Path, layer: Layer, machine: Machine) -> Found<Half> {
    let from = sources(layer);
    Ok(Half {
        machine,
        simulation: simulation(directory, layer, from.counts)?,
        model: rows(directory, from.model)?,
        chaos: rows(directory, from.chaos)?,
        fuzz: rows(directory, from.fuzz)?,
    })
}

fn rows(directory: &Path, (kind, make): (&str, &str)) -> Found<Vec<Row>> {
    let list = |error| unreadable(directory, &error);
    let mut rows: Vec<Row> = Vec::new();
    let mut seen = BTreeSet::new();
    for entry in fs::read_dir(directory).map_err(list)? {
        let entry = entry.map_err(list)?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if !name.starts_with(&format!("{kind}-")) || !name.ends_with(".json") {
            continue;
        }
        let path = entry.path();
        for row in parse::<Vec<Row>>(&path)? {
            check_row(&row, kind).map_err(|problem| format!("{}: {problem}", path.display()))?;
            if !seen.insert((row.place.clone(), row.fault.clone())) {
                let Row { fault, place, .. } = row;
                return Err(format!(
                    "{}: {fault:?} on {place} was told by another file, too",
                    path.display()
                ));
            }
            rows.push(row);
        }
    }
    if rows.is_empty() {
        return Err(format!("{} has no {kind}-*.json: {make} writes it", directory.display()));
    }
    rows.sort_by(|one, other| (&one.place, &one.fault).cmp(&(&other.place, &other.fault)));
    Ok(rows)
}

/// The tests that wrote the row stop at a broken promise; this is for a directory that was filled by hand, or
/// in vain.
fn check_row(row: &Row, kind: &str) -> Found<()> {
    let Row { place, fault, promised, happened, .. } = row;
    if row.kind != kind {
        return Err(format!("a row of kind {:?} among those of kind {kind:?}", row.kind));
    }
    if [place, fault, promised, happened].iter().any(|text| text.trim().is_empty()) {
        return Err("a row with an empty text".to_owned());
    }
    if row.injected == 0 {
        return Err(format!("{fault:?} was never injected"));
    }
    let broken = || Err(format!("{fault:?} broke a promise: {happened}"));
    match kind {
        "chaos" | "task-chaos" => {
            let recovery = row.recovery_ms.ok_or_else(|| format!("{fault:?} has no recovery_ms"))?;
            if recovery.median > recovery.longest {
                return Err(format!("{fault:?}: the median is longer than the longest"));
            }
            if row.starts.is_none_or(|starts| starts == 0) {
                return Err(format!("{fault:?}: nothing started"));
            }
            let sound = match kind {
                "chaos" => {
                    happened.starts_with("0 of ")
                        && happened.contains(", 0 started twice, 0 without a grant,")
                }
                _ => happened.contains("; 0 promises broken,"),
            };
            if !sound { broken() } else { Ok(()) }
        }
        "model" | "task-model" if row.is_flaw() && !happened.starts_with("refuted in ") => {
            Err(format!("{fault:?} is wrong and was not refuted: {happened}"))
        }
        "model" | "task-model" if !row.is_flaw() && !happened.starts_with("no violation in ") => broken(),
        _ => Ok(()),
    }
}

impl Row {
    /// Whether the row tells of rules that are wrong on purpose.
    pub(crate) fn is_flaw(&self) -> bool {
        self.promised.starts_with("refuted: ")
    }
}

fn simulation(directory: &Path, layer: Layer, counts: &[&str]) -> Found<Simulation> {
    let path = directory.join("simulation-faults.txt");
    let text = fs::read_to_string(&path).map_err(|error| unreadable(&path, &error))?;
    let mut lists = text.split("\n\n").map(names);
    let faults = lists.next().unwrap_or_default();
    let rules = lists.nth(if layer == Layer::Pace { 0 } else { 1 }).unwrap_or_default();
    if faults.is_empty() || rules.is_empty() {
        let path = path.display();
        return Err(format!(
            "{path}: no faults, or no rules that can be broken, as `interval-queue-sim faults` lists them"
        ));
    }
    let schedules = sound(directory, "schedules", counts)?;
    if let Some(fault) = faults.iter().find(|fault| !schedules.faults.contains_key(&fault.name)) {
        let path = directory.join("simulation-schedules.json");
        return Err(format!(
            "{}: the fault {} was never injected: use more seeds",
            path.display(),
            fault.name
        ));
    }
    let large = sound(directory, "large", counts)?;
    let mut broken_rules = Vec::new();
    for rule in rules {
        let path = directory.join(format!("simulation-broken-{}.json", rule.name));
        let run = run(&path, counts)?;
        if run.violation.is_none() {
            return Err(format!("{}: the broken rule {} was not found", path.display(), rule.name));
        }
        broken_rules.push(BrokenRule { rule, run });
    }
    Ok(Simulation { faults, schedules, large, broken_rules })
}

/// A run in which no promise was broken.
fn sound(directory: &Path, name: &str, counts: &[&str]) -> Found<SimulationRun> {
    let path = directory.join(format!("simulation-{name}.json"));
    let run = run(&path, counts)?;
    let problem = match &run.violation {
        Some(violation) => format!("seed {} broke a promise: {}", violation.seed, violation.what),
        None if run.simulations == 0 || run.counts.values().all(|&count| count == 0) => {
            "nothing was simulated".to_owned()
        }
        None => return Ok(run),
    };
    Err(format!("{}: {problem}", path.display()))
}

/// A run that has counted this.
fn run(path: &Path, counts: &[&str]) -> Found<SimulationRun> {
    let run = parse::<SimulationRun>(path)?;
    if run.counts.keys().ne(counts) {
        let (found, wanted) = (run.counts.keys().cloned().collect::<Vec<_>>().join(", "), counts.join(", "));
        return Err(format!("{} counts {found}: it should count {wanted}", path.display()));
    }
    Ok(run)
}

/// Lines of a name and what it means, below a heading.
fn names(text: &str) -> Vec<Named> {
    let words = text.lines().skip(1).filter_map(|line| line.trim().split_once(' '));
    words.map(|(name, what)| Named { name: name.to_owned(), what: what.trim().to_owned() }).collect()
}

fn parse<T: DeserializeOwned>(path: &Path) -> Found<T> {
    let text = fs::read_to_string(path).map_err(|error| unreadable(path, &error))?;
    serde_json::from_str(&text)
        .map_err(|error| format!("{} is not what such a run writes: {error}", path.display()))
}

fn unreadable(path: &Path, error: &io::Error) -> String {
    format!("cannot read {}: {error}", path.display())
}
