//! The section of each scenario.

use interval_queue_report::paragraph;

use super::{
    failures,
    pace::{
        CLOSE, CLOSEST, CONTENDER, CPU, CPUS, GAP_MAX, GAP_MIN, GAP_P1S, GAP_P50, GAP_P99, GAPS, INTERVAL,
        INVERSIONS, LATE_MAX, LATE_P50, LATE_P99, LEASE, LOST, OPERATIONS, OWN_SLOTS, RATE_DURING, RATES,
        RATES_AFTER, SCENARIO, SERVER_CPUS, SLOTS_LOST, STARTS_PER_SECOND, STATE, Said, TWICE, WAITED_P50,
        WAITED_P99, WAITING,
    },
    picture, spanned,
    table::table,
};
use crate::{
    choice::is_ours,
    figures::interval,
    pictures::Picture,
    report::{Pace, Report, Scenario},
};

const ACCURACY: &[Said] = &[
    CONTENDER, STATE, RATES, GAP_MIN, GAP_P1S, GAP_P50, GAP_P99, GAP_MAX, CLOSE, GAPS, INVERSIONS, LOST,
    TWICE,
];
const COST: &[Said] = &[INTERVAL, CONTENDER, STATE, OPERATIONS, CPUS, SERVER_CPUS];
const LATENESS: &[Said] = &[INTERVAL, STATE, LATE_P50, LATE_P99, LATE_MAX, CLOSEST];
const SPARSE: &[Said] = &[
    INTERVAL, CONTENDER, STATE, CLOSE, GAPS, INVERSIONS, LOST, TWICE, WAITED_P50, WAITED_P99, OPERATIONS, CPU,
];
const KILLED: &[Said] = &[
    INTERVAL,
    CONTENDER,
    STATE,
    WAITING,
    LEASE,
    SLOTS_LOST,
    OWN_SLOTS,
    RATE_DURING,
    RATES_AFTER,
    CLOSE,
    GAPS,
    LOST,
    TWICE,
];
const ALONE: &[Said] =
    &[INTERVAL, SCENARIO, CONTENDER, STATE, RATES, GAP_P1S, CLOSE, GAPS, LATE_P50, LATE_P99, CPUS];
const AHEAD: &[Said] = &[INTERVAL, CONTENDER, STATE, STARTS_PER_SECOND, CPUS, LOST, TWICE];

pub(super) fn saturated(report: &Report) -> Option<String> {
    let what = "Twice as many jobs are offered as there are slots. A cell has the median of the runs and, in brackets, \
                the lowest and the highest.";
    busy(report, Scenario::Saturated, "Saturated", what)
}

pub(super) fn far(report: &Report) -> Option<String> {
    let what = "As saturated, with a network to the store whose round trip takes 40 ms more.";
    busy(report, Scenario::Far, "Far away", what)
}

/// A scenario with more jobs than slots.
fn busy(report: &Report, scenario: Scenario, title: &str, what: &str) -> Option<String> {
    let is_meant = |pace: &Pace| pace.scenario == scenario && pace.processes > 1;
    let paces = measured(report, is_meant);
    let mut intervals: Vec<_> = paces.iter().map(|pace| pace.interval).collect();
    intervals.dedup();
    let mut parts = vec![format!("## {title}\n\n{}", paragraph(&format!("{what} {}", size(&paces)?)))];
    for each in intervals {
        let paces: Vec<_> = paces.iter().copied().filter(|pace| pace.interval == each).collect();
        let table = table(&paces, ACCURACY);
        parts.extend(table.map(|table| format!("### {title}: one job per {}\n\n{table}", interval(each))));
    }
    parts.extend(table(&paces, COST).map(|table| format!("### {title}: what it costs\n\n{table}")));
    let has_slots = |pace: &&Pace| pace.runs.iter().any(|run| run.lateness.is_some());
    let with_slots: Vec<_> = paces.into_iter().filter(has_slots).collect();
    let what = paragraph(
        "The time from the slot of a job of interval-queue to its start, and the shortest time between two slots by the \
         store's clock.",
    );
    let table = table(&with_slots, LATENESS);
    parts.extend(table.map(|table| format!("### {title}: time after the slot\n\n{what}\n{table}")));
    parts.extend(failures(report, is_meant));
    Some(parts.join("\n"))
}

pub(super) fn killed(report: &Report, pictures: &[Picture]) -> Option<String> {
    let what = "One process is killed with `kill -9` while jobs wait in it. With interval-queue the slots of those jobs \
                pass unused until the lease ends, because a dead process cannot be detected before. Other slots are used, \
                and all slots after that. The other libraries have no lease: for them \"until then\" is the rest of the run.";
    let pictures = ["recovery", "kill"].into_iter().filter_map(|name| picture(pictures, name)).collect();
    let is_meant = |pace: &Pace| pace.scenario == Scenario::Killed && pace.processes > 1;
    section(report, is_meant, "Killed", what, pictures, KILLED)
}

pub(super) fn sparse(report: &Report) -> Option<String> {
    let what = "Half as many jobs are offered as there are slots, at random instants. A job may start at once unless the \
                previous one started less than an interval ago.";
    let is_meant = |pace: &Pace| pace.scenario == Scenario::Sparse && pace.processes > 1;
    section(report, is_meant, "Sparse", what, Vec::new(), SPARSE)
}

/// One process, compared with limiters for one process.
pub(super) fn alone(report: &Report) -> Option<String> {
    let what = "One process that shares its rate with no other, compared with limiters for that case. These keep no queue \
                that can be inspected, paused or cancelled.";
    let is_meant = |pace: &Pace| pace.scenario != Scenario::Ahead && pace.processes == 1;
    section(report, is_meant, "One process", what, Vec::new(), ALONE)
}

pub(super) fn ahead(report: &Report) -> Option<String> {
    let what = "All jobs are added before the first may start, and the interval is shorter than a start takes. The table \
                shows how many start in a second.";
    section(report, |pace| pace.scenario == Scenario::Ahead, "As fast as possible", what, Vec::new(), AHEAD)
}

/// A section of one table under some pictures.
fn section(
    report: &Report,
    is_meant: impl Fn(&Pace) -> bool,
    title: &str,
    what: &str,
    pictures: Vec<String>,
    columns: &[Said],
) -> Option<String> {
    let paces = measured(report, &is_meant);
    let table = table(&paces, columns)?;
    let what = paragraph(&format!("{what} {}", size(&paces)?));
    let parts = [format!("## {title}\n\n{what}")].into_iter().chain(pictures).chain([table]);
    Some(parts.chain(failures(report, is_meant)).collect::<Vec<_>>().join("\n"))
}

/// By interval; ours first.
fn measured(report: &Report, is_meant: impl Fn(&Pace) -> bool) -> Vec<&Pace> {
    let mut paces: Vec<_> =
        report.paces.iter().filter(|pace| is_meant(pace) && !pace.runs.is_empty()).collect();
    paces.sort_by_key(|pace| (pace.interval, pace.scenario, !is_ours(pace)));
    paces
}

/// How much was run. None if nothing was.
fn size(paces: &[&Pace]) -> Option<String> {
    let processes = spanned(paces.iter().map(|pace| u64::from(pace.processes)))?;
    let runs = spanned(paces.iter().map(|pace| pace.runs.len() as u64))?;
    let jobs = spanned(paces.iter().map(|pace| pace.jobs))?;
    Some(format!("Processes: {processes}; runs: {runs}; jobs in a run: {jobs}."))
}
