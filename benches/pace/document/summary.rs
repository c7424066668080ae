//! What one wants to know first.

use interval_queue_report::paragraph;

use super::{
    pace::{self, middle},
    spanned,
    table::{column, table},
};
use crate::{
    choice::{Choice, INTERVAL, is_ours},
    figures::{interval, percent},
    report::{Kill, Pace, Report, Scenario},
};

pub(super) fn beginning(report: &Report) -> String {
    let ran = report.paces.iter().filter(|pace| !is_ours(pace) && !pace.runs.is_empty());
    let mut others: Vec<_> = ran.map(|pace| pace.contender.as_str()).collect();
    others.sort_unstable();
    others.dedup();
    let ran = "ran beside it, in the same run on the same machine, \
               [set up as their documentation tells](https://github.com/interval-queue/interval-queue/blob/main/benches/peers/README.md)";
    let beside = match others.as_slice() {
        [] => String::new(),
        [other] => format!(" {other} {ran}."),
        [others @ .., last] => {
            format!(" {} and {last} {ran}.", others.join(", "))
        }
    };
    let what = paragraph(&format!(
        "How exactly does interval-queue keep a pace that several processes share, and what does it cost? Real processes \
         start real jobs, and each job notes when it starts.{beside}"
    ));
    let how = paragraph(&format!(
        "One command makes this page: `scripts/benchmarks`. It runs everything again and draws the pictures. `cargo bench \
         --bench pace -- --help` tells how to run a part of it. This page was made on {} by `{}`; the figures of every \
         single run are in [benchmarks.json](benchmarks.json). They are those of one machine: compare the rows of a table \
         with each other, not with those of another machine.",
        report.day, report.command
    ));
    format!("# Benchmarks\n\n{what}\n{how}")
}

/// All contenders at one interval, one row each for what they share.
pub(super) fn headline(choice: &Choice<'_>) -> Option<String> {
    let killed = choice.paces(Scenario::Killed);
    let after = |pace: &Pace| {
        let is_same = |other: &&&Pace| (&other.contender, &other.state) == (&pace.contender, &pace.state);
        // Without a lease there is no "after" it: all that follows the kill is told as one.
        let rate = |kill: &Kill| kill.rate_after.or(kill.rate_during);
        let rates = |pace: &&Pace| middle(pace, |run| run.kill.as_ref().and_then(rate), percent);
        killed.iter().find(is_same).map_or(String::new(), rates)
    };
    let name = |pace: &Pace| {
        let name = &pace.contender;
        if is_ours(pace) { format!("**{name}**") } else { name.clone() }
    };
    let columns = [
        column("", &name),
        pace::STATE,
        pace::RATE,
        pace::GAP_P1,
        pace::CLOSE_OF_1000,
        pace::GAPS,
        pace::INVERSION,
        pace::OPERATIONS,
        pace::CPU,
        pace::SERVER_CPU,
        column("rate after a kill, %", &after),
    ];
    let paces = choice.paces(Scenario::Saturated);
    let table = table(&paces, &columns)?;
    let kill = if killed.is_empty() {
        ""
    } else {
        " The last column is the rate after one process was killed with `kill -9` while jobs waited in it: of \
         interval-queue from the end of its lease on, of the others in the whole rest of the run."
    };
    let what = paragraph(&format!(
        "One job may start per {}, and {} processes offer twice as many. Medians of {} runs.{kill} \
         [How it is measured](#how-it-is-measured) says what each column means.",
        interval(INTERVAL),
        spanned(paces.iter().map(|pace| u64::from(pace.processes)))?,
        spanned(paces.iter().map(|pace| pace.runs.len() as u64))?,
    ));
    Some(format!("## At a glance\n\n{what}\n{table}"))
}
