//! The page `docs/benchmarks.md`, section by section. A section without figures is left out.

mod more;
mod pace;
mod scenarios;
mod summary;
mod table;

use std::collections::BTreeMap;

use interval_queue_report::{counted, paragraph};
use table::column;

use crate::{
    choice::Choice,
    figures::interval,
    pictures::Picture,
    report::{Pace, Report},
};

/// The section on the limits.
const NOTES: &str = include_str!("notes.md");
/// The beginning of the part on stored tasks.
const TASKS: &str = include_str!("stored_tasks.md");
/// The meaning of the columns.
const METHOD: &str = include_str!("method.md");

/// The page in Markdown, with these pictures of the same report.
pub(crate) fn document(report: &Report, pictures: &[Picture]) -> String {
    let choice = Choice::of(report);
    let sections = [
        Some(summary::beginning(report)),
        summary::headline(&choice),
        picture(pictures, "gap_error"),
        picture(pictures, "starts"),
        scenarios::killed(report, pictures),
        scenarios::saturated(report),
        scenarios::far(report),
        scenarios::sparse(report),
        scenarios::alone(report),
        scenarios::ahead(report),
        more::idle(report),
        more::crowds(report, pictures),
        more::lines(report),
        (!report.tasks.is_empty()).then(|| TASKS.to_owned()),
        (!report.tasks.is_empty()).then(|| report.tasks.values().cloned().collect::<Vec<_>>().join("\n")),
        Some(NOTES.to_owned()),
        Some(METHOD.to_owned()),
        Some(machine(report)),
    ];
    sections.into_iter().flatten().collect::<Vec<_>>().join("\n")
}

/// The line that shows a picture.
fn picture(pictures: &[Picture], name: &str) -> Option<String> {
    let picture = pictures.iter().find(|picture| picture.name == name)?;
    Some(format!("![{}](benchmarks/{name}.svg)\n", picture.description))
}

/// The contenders that were not measured in each run, with the reason.
fn failures(report: &Report, is_meant: impl Fn(&Pace) -> bool) -> Option<String> {
    let told = report.paces.iter().filter(|pace| is_meant(pace)).filter_map(|pace| {
        let why = one_line(pace.failure.as_deref()?);
        let (each, runs) = (interval(pace.interval), pace.runs.len());
        let (contender, store) = (&pace.contender, &pace.state);
        Some(bullet(&format!("{contender}, {store}, one job per {each}, after {runs} runs: {why}")))
    });
    let told: String = told.collect();
    (!told.is_empty()).then(|| format!("These did not run to their end:\n\n{told}"))
}

/// An item of a list.
fn bullet(text: &str) -> String {
    format!("{}\n", paragraph(&format!("- {text}")).trim_end().replace('\n', "\n  "))
}

/// A message as a part of a list.
fn one_line(message: &str) -> String {
    message.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A number, or the lowest and the highest of several. `None`: there are none.
fn spanned(numbers: impl IntoIterator<Item = u64>) -> Option<String> {
    let mut numbers: Vec<_> = numbers.into_iter().collect();
    numbers.sort_unstable();
    let (first, last) = (*numbers.first()?, *numbers.last()?);
    Some(if first == last { counted(first) } else { format!("{} to {}", counted(first), counted(last)) })
}

fn machine(report: &Report) -> String {
    let machine = &report.machine;
    let facts = [
        ("processor", format!("{}, {} cores", machine.processor, machine.cores)),
        ("memory", format!("{} GiB", machine.memory_gib)),
        ("system", machine.system.clone()),
        ("file system of the disk", machine.disk.clone()),
    ];
    let versions: BTreeMap<&str, String> =
        report.versions.iter().map(|(name, version)| (name.as_str(), version.clone())).collect();
    let rows: Vec<_> = facts.into_iter().chain(versions).collect();
    let columns = [
        column("", &|(name, _): &(&str, String)| (*name).to_owned()),
        column("what", &|(_, value)| value.clone()),
    ];
    let table = table::table(&rows.iter().collect::<Vec<_>>(), &columns).unwrap_or_default();
    format!("## Machine and versions\n\n{table}")
}
