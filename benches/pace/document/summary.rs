//! The beginning of the page, and its first table.

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
    let ran = "ran in the same run on the same machine, \
               [set up as their documentation describes](https://github.com/interval-queue/interval-queue/blob/main/benches/peers/README.md)";
    let beside = match others.as_slice() {
        [] => String::new(),
        [other] => format!(" {other} {ran}."),
        [others @ .., last] => {
            format!(" {} and {last} {ran}.", others.join(", "))
        }
    };
    let how = paragraph(
        "To measure again, run `scripts/benchmarks` on an idle machine. It makes this page and its pictures. To measure a \
         part, run `cargo bench --bench pace -- --help`. Compare the rows of a table with each other, not figures of \
         different machines.",
    );
    let tasks =
        if report.tasks.is_empty() { "" } else { " The second part is about [stored tasks](#stored-tasks)." };
    let what = paragraph(&format!(
        "The first part of this page shows how exactly interval-queue keeps a rate that several processes share, and what \
         that costs. Real processes start real jobs, and each job records its start.{beside}{tasks}"
    ));
    let made = paragraph(&format!(
        "The figures of rates were made on {} by `{}`. [benchmarks.json](benchmarks.json) has the figures of each run.",
        report.day, report.command
    ));
    format!("# Benchmarks\n\n{how}\n{what}\n{made}")
}

/// All contenders at one interval, one row each for what they share.
pub(super) fn headline(choice: &Choice<'_>) -> Option<String> {
    let killed = choice.paces(Scenario::Killed);
    let after = |pace: &Pace| {
        let is_same = |other: &&&Pace| (&other.contender, &other.state) == (&pace.contender, &pace.state);
        // Without a lease all that follows the kill is one span.
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
        " For the last column one process was killed with `kill -9` while jobs waited in it. It is the rate from the end \
         of that process's lease on. The other libraries have no lease, so it is the rate of the rest of the run."
    };
    let what = paragraph(&format!(
        "One job may start per {}, and {} processes offer twice as many. Medians of {} runs.{kill} \
         [How it is measured](#how-it-is-measured) explains each column.",
        interval(INTERVAL),
        spanned(paces.iter().map(|pace| u64::from(pace.processes)))?,
        spanned(paces.iter().map(|pace| pace.runs.len() as u64))?,
    ));
    Some(format!("## At a glance\n\n{what}\n{table}"))
}
