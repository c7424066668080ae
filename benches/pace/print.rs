//! What is shown on the terminal.

use std::{collections::BTreeSet, time::Duration};

use crate::{
    report::{Crowd, Idle, LongLine, Pace, Report, Run, Spread},
    scenario::shown,
};

/// A column: its head and what a run, or all of them, brought.
struct Column {
    head: &'static str,
    of: fn(&Pace) -> String,
}

const COLUMNS: [Column; 16] = [
    Column { head: "interval", of: interval },
    Column { head: "rate %", of: |pace| show(median(pace, |run| Some(run.rate * 100.0)), 2) },
    Column { head: "gap min", of: |pace| part(pace, |gaps| gaps.min) },
    Column { head: "p1", of: |pace| part(pace, |gaps| gaps.p1) },
    Column { head: "p50", of: |pace| part(pace, |gaps| gaps.p50) },
    Column { head: "p99", of: |pace| part(pace, |gaps| gaps.p99) },
    Column { head: "max", of: |pace| part(pace, |gaps| gaps.max) },
    Column {
        head: "close",
        of: |pace| {
            format!("{}/{}", sum(pace, |run| run.close), sum(pace, |run| run.started.saturating_sub(1)))
        },
    },
    Column { head: "inverted", of: |pace| sum(pace, |run| run.inversions).to_string() },
    Column { head: "late p50", of: |pace| late(pace, |late| late.p50) },
    Column { head: "p99", of: |pace| late(pace, |late| late.p99) },
    Column { head: "max", of: |pace| late(pace, |late| late.max) },
    Column { head: "ops/job", of: |pace| show(median(pace, |run| run.operations), 2) },
    Column { head: "cpu/job", of: |pace| show(median(pace, |run| run.cpu), 0) },
    Column { head: "server", of: |pace| show(median(pace, |run| run.server_cpu), 0) },
    Column { head: "others %", of: |pace| show(median(pace, |run| Some(run.others? * 100.0)), 0) },
];

/// Shows all that was found.
pub(crate) fn report(report: &Report) {
    if !report.paces.is_empty() {
        println!(
            "\nMedians of the runs; `close` (gaps under 90 % of the interval) and `inverted` (pairs started in the wrong \
             order) of all runs together.\nGaps in % of the interval, late in µs after the slot, cpu (of \
             all processes) and server in µs per job,\nothers: what other programs used of the processors meanwhile.\n"
        );
        let (run, not_run): (Vec<_>, Vec<_>) = report.paces.iter().partition(|pace| !pace.runs.is_empty());
        let names: Vec<String> = run.iter().copied().map(name).collect();
        let row = |pace: &&Pace| COLUMNS.iter().map(|column| (column.of)(pace)).collect();
        print_table(&names, &run.iter().map(row).collect::<Vec<_>>());
        run.into_iter().for_each(remarks);
        let reasons = not_run.iter().filter_map(|pace| Some((&pace.contender, pace.failure.as_ref()?)));
        for (contender, reason) in reasons.collect::<BTreeSet<_>>() {
            println!("{contender}: {reason}");
        }
    }
    report.idle.iter().for_each(idle);
    report.crowds.iter().for_each(crowd);
    report.lines.iter().for_each(line);
}

fn crowd(crowd: &Crowd) {
    let interval = crowd.interval as f64;
    let gap = |gap: f64| show(Some(gap / interval * 100.0), 1);
    println!(
        "crowd {} {} shards {} ms: rate {:.2} %, gap p1 {} p50 {} p99 {} max {} %, {} close, {:.0} commands/s, {:.2}/job, \
         {:.1} % of a core, server {} %, record {} bytes{}",
        crowd.state,
        crowd.shards,
        interval / 1000.0,
        crowd.rate * 100.0,
        gap(crowd.gaps.p1),
        gap(crowd.gaps.p50),
        gap(crowd.gaps.p99),
        gap(crowd.gaps.max),
        crowd.close,
        crowd.operations_per_second,
        crowd.operations,
        crowd.cpu_share * 100.0,
        show(crowd.server_share.map(|share| share * 100.0), 1),
        show(crowd.record_bytes.map(|bytes| bytes as f64), 0),
        crowd.failure.as_ref().map_or(String::new(), |failure| format!("; {failure}")),
    );
}

fn line(line: &LongLine) {
    println!(
        "line {} {} jobs: {:.0} bytes each, added in {:.2} s, cancelled in {:.2} s, {} starts/s",
        line.state,
        line.jobs,
        line.bytes_per_job,
        line.add_seconds,
        line.cancel_seconds,
        show(line.starts_per_second, 0),
    );
}

fn idle(idle: &Idle) {
    let spread = |spread: &Spread| format!("{:.0} ({:.0} to {:.0})", spread.p50, spread.p1, spread.p99);
    let calls = match idle.system_calls {
        Some(calls) => format!("{calls} system calls in {} s of quiet", idle.quiet_seconds),
        None => "system calls not counted".to_owned(),
    };
    println!(
        "idle {}: µs to start {}, round trip {}, {:.2} of it; {:.2} commands/job; {calls}",
        idle.state,
        spread(&idle.start),
        spread(&idle.round_trip),
        idle.start.p50 / idle.round_trip.p50,
        idle.operations,
    );
}

fn print_table(names: &[String], rows: &[Vec<String>]) {
    let name_width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = COLUMNS
        .iter()
        .enumerate()
        .map(|(n, column)| {
            rows.iter().map(|row| row[n].chars().count()).chain([column.head.len()]).max().unwrap_or(0)
        })
        .collect();
    let line = |name: &str, cells: &mut dyn Iterator<Item = &str>| {
        let cells: String = cells.zip(&widths).map(|(cell, width)| format!("  {cell:>width$}")).collect();
        println!("{name:<name_width$}{cells}");
    };
    line("", &mut COLUMNS.iter().map(|column| column.head));
    for (name, row) in names.iter().zip(rows) {
        line(name, &mut row.iter().map(String::as_str));
    }
}

/// What has no column: it should not be there, or only one scenario has it.
fn remarks(pace: &Pace) {
    let name = name(pace);
    let say = |what: String| println!("{name} {}: {what}", interval(pace));
    let (lost, twice) = (sum(pace, |run| run.lost), sum(pace, |run| run.twice));
    if lost + twice > 0 {
        say(format!("{lost} jobs lost, {twice} started twice"));
    }
    let closest = pace.runs.iter().filter_map(|run| run.closest_slots).min();
    if let Some(closest) = closest.filter(|closest| *closest < pace.interval) {
        say(format!("two slots only {closest} µs apart"));
    }
    if let Some(kill) = pace.runs.iter().find_map(|run| run.kill.as_ref()) {
        let of =
            |of: fn(&crate::report::Kill) -> Option<f64>| median(pace, |run| run.kill.as_ref().and_then(of));
        say(format!(
            "killed with {} jobs waiting: {} slots lost in {} ms, {} of them its own; then {} % of the rate",
            kill.waiting,
            show(of(|kill| Some(kill.slots_lost as f64)), 0),
            show(of(|kill| Some(kill.lease as f64 / 1000.0)), 0),
            show(of(|kill| kill.own_slots.map(|own| own as f64)), 0),
            show(of(|kill| kill.rate_after.map(|rate| rate * 100.0)), 2),
        ));
    }
    if let Some(failure) = &pace.failure {
        say(failure.clone());
    }
}

fn name(pace: &Pace) -> String {
    let scenario = format!("{:?}", pace.scenario).to_lowercase();
    format!("{} {scenario} {}", pace.contender, pace.state)
}

fn interval(pace: &Pace) -> String {
    shown(Duration::from_micros(pace.interval))
}

fn median(pace: &Pace, of: impl Fn(&Run) -> Option<f64>) -> Option<f64> {
    let mut values: Vec<f64> = pace.runs.iter().filter_map(of).collect();
    values.sort_by(f64::total_cmp);
    let upper = values.get(values.len() / 2)?;
    let lower = values[(values.len() - 1) / 2];
    Some(lower.midpoint(*upper))
}

fn sum(pace: &Pace, of: impl Fn(&Run) -> u64) -> u64 {
    pace.runs.iter().map(of).sum()
}

fn part(pace: &Pace, of: impl Fn(&Spread) -> f64) -> String {
    show(median(pace, |run| Some(of(&run.gaps) / pace.interval as f64 * 100.0)), 1)
}

fn late(pace: &Pace, of: impl Fn(&Spread) -> f64) -> String {
    show(median(pace, |run| run.lateness.as_ref().map(&of)), 0)
}

fn show(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$}"))
}
