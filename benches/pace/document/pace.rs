//! The columns of a contender in a scenario.

use interval_queue_report::counted;

use super::table::{Column, column};
use crate::{
    figures::{figure, interval, median, percent, range},
    report::{Kill, Pace, Run, Scenario, Spread},
};

pub(super) type Said = Column<'static, Pace>;

pub(super) const CONTENDER: Said = column("", &|pace| pace.contender.clone());
pub(super) const STATE: Said = column("store", &|pace| pace.state.clone());
pub(super) const INTERVAL: Said = column("interval", &|pace| interval(pace.interval));
pub(super) const SCENARIO: Said = column("", &|pace| match pace.scenario {
    Scenario::Saturated => "saturated".to_owned(),
    Scenario::Sparse => "sparse".to_owned(),
    Scenario::Killed => "killed".to_owned(),
    Scenario::Far => "far away".to_owned(),
    Scenario::Ahead => "all at once".to_owned(),
});

pub(super) const RATE: Said = column("rate, %", &|pace| middle(pace, |run| Some(run.rate), percent));
pub(super) const RATES: Said = column("rate, %", &|pace| {
    // How many jobs are offered says nothing of who starts them.
    if pace.scenario == Scenario::Sparse {
        String::new()
    } else {
        spread(pace, |run| Some(run.rate), percent)
    }
});
pub(super) const STARTS_PER_SECOND: Said =
    column("starts per second", &|pace| spread(pace, |run| of_interval(pace, 1e6 * run.rate), figure));
pub(super) const GAP_P1: Said =
    column("gap p1, % of the interval", &|pace| middle(pace, |run| of_interval(pace, run.gaps.p1), percent));
pub(super) const GAP_P1S: Said =
    column("gap p1, %", &|pace| spread(pace, |run| of_interval(pace, run.gaps.p1), percent));
pub(super) const GAP_MIN: Said =
    column("min, %", &|pace| middle(pace, |run| of_interval(pace, run.gaps.min), percent));
pub(super) const GAP_P50: Said =
    column("p50, %", &|pace| middle(pace, |run| of_interval(pace, run.gaps.p50), percent));
pub(super) const GAP_P99: Said =
    column("p99, %", &|pace| middle(pace, |run| of_interval(pace, run.gaps.p99), percent));
pub(super) const GAP_MAX: Said =
    column("max, %", &|pace| middle(pace, |run| of_interval(pace, run.gaps.max), percent));
pub(super) const CLOSE: Said = column("close", &|pace| total(pace, |run| run.close));
pub(super) const CLOSE_OF_1000: Said = column("close gaps per 1,000", &|pace| {
    let (close, gaps) = (sum(pace, |run| run.close), sum(pace, gaps));
    if gaps == 0 { String::new() } else { figure(1_000.0 * close as f64 / gaps as f64) }
});
pub(super) const GAPS: Said = column("of gaps", &|pace| total(pace, gaps));
pub(super) const INVERSION: Said =
    column("inversions", &|pace| middle(pace, |run| Some(run.inversions as f64), whole));
pub(super) const INVERSIONS: Said =
    column("inversions", &|pace| spread(pace, |run| Some(run.inversions as f64), whole));
pub(super) const LOST: Said = column("lost", &|pace| total(pace, |run| run.lost));
pub(super) const TWICE: Said = column("twice", &|pace| total(pace, |run| run.twice));

pub(super) const OPERATIONS: Said =
    column("operations per job", &|pace| middle(pace, |run| run.operations, figure));
pub(super) const CPU: Said = column("CPU per job, µs", &|pace| middle(pace, |run| run.cpu, figure));
pub(super) const CPUS: Said = column("CPU per job, µs", &|pace| spread(pace, |run| run.cpu, figure));
pub(super) const SERVER_CPU: Said =
    column("server CPU per job, µs", &|pace| middle(pace, |run| run.server_cpu, figure));
pub(super) const SERVER_CPUS: Said =
    column("server CPU per job, µs", &|pace| spread(pace, |run| run.server_cpu, figure));

pub(super) const LATE_P50: Said = column("late p50, µs", &|pace| late(pace, |late| late.p50));
pub(super) const LATE_P99: Said = column("late p99, µs", &|pace| late(pace, |late| late.p99));
pub(super) const LATE_MAX: Said = column("late max, µs", &|pace| late(pace, |late| late.max));
pub(super) const CLOSEST: Said = column("closest slots, %", &|pace| {
    let closest = pace.runs.iter().filter_map(|run| run.closest_slots).min();
    closest.and_then(|closest| of_interval(pace, closest as f64)).map_or(String::new(), percent)
});
pub(super) const WAITED_P50: Said = column("waited p50, ms", &|pace| waited(pace, |waited| waited.p50));
pub(super) const WAITED_P99: Said = column("waited p99, ms", &|pace| waited(pace, |waited| waited.p99));

pub(super) const WAITING: Said =
    column("jobs it had", &|pace| kill(pace, |kill| Some(kill.waiting as f64), whole));
pub(super) const LEASE: Said =
    column("lease, s", &|pace| kill(pace, |kill| Some(kill.lease as f64 / 1e6), figure));
pub(super) const SLOTS_LOST: Said =
    column("slots lost", &|pace| kill(pace, |kill| Some(kill.slots_lost as f64), whole));
pub(super) const OWN_SLOTS: Said =
    column("of them its own", &|pace| kill(pace, |kill| kill.own_slots.map(|own| own as f64), whole));
pub(super) const RATE_DURING: Said =
    column("rate until then, %", &|pace| kill(pace, |kill| kill.rate_during, percent));
pub(super) const RATES_AFTER: Said = column("rate after, %", &|pace| {
    spread(pace, |run| run.kill.as_ref().and_then(|kill| kill.rate_after), percent)
});

fn gaps(run: &Run) -> u64 {
    run.started.saturating_sub(1)
}

fn of_interval(pace: &Pace, microseconds: f64) -> Option<f64> {
    (pace.interval > 0).then(|| microseconds / pace.interval as f64)
}

fn whole(value: f64) -> String {
    let sign = if value <= -0.5 { "−" } else { "" };
    format!("{sign}{}", counted(value.abs().round() as u64))
}

/// The median of the runs.
pub(super) fn middle(pace: &Pace, pick: impl Fn(&Run) -> Option<f64>, show: fn(f64) -> String) -> String {
    median(pace.runs.iter().filter_map(pick)).map_or(String::new(), show)
}

/// The median of the runs, and the lowest and the highest if they read otherwise.
fn spread(pace: &Pace, pick: impl Fn(&Run) -> Option<f64>, show: fn(f64) -> String) -> String {
    let median = middle(pace, &pick, show);
    match range(pace.runs.iter().filter_map(pick)).map(|(low, high)| (show(low), show(high))) {
        Some((low, high)) if low != high => format!("{median} ({low}–{high})"),
        _ => median,
    }
}

fn sum(pace: &Pace, pick: impl Fn(&Run) -> u64) -> u64 {
    pace.runs.iter().map(pick).sum()
}

/// The sum of the runs.
fn total(pace: &Pace, pick: impl Fn(&Run) -> u64) -> String {
    if pace.runs.is_empty() { String::new() } else { counted(sum(pace, pick)) }
}

fn late(pace: &Pace, pick: fn(&Spread) -> f64) -> String {
    middle(pace, |run| run.lateness.as_ref().map(pick), figure)
}

fn waited(pace: &Pace, pick: fn(&Spread) -> f64) -> String {
    middle(pace, |run| run.waited.as_ref().map(|waited| pick(waited) / 1_000.0), figure)
}

fn kill(pace: &Pace, pick: impl Fn(&Kill) -> Option<f64>, show: fn(f64) -> String) -> String {
    middle(pace, |run| run.kill.as_ref().and_then(&pick), show)
}
