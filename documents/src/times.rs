//! How long tasks waited and ran, and how many were added and ended.

use interval_queue::Micros;
use interval_queue_tasks::{Histogram, Kind, contract};
use schemars::JsonSchema;
use serde::Serialize;

/// How long tasks waited and ran, by kind and hour: `tasks times --json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "times", title = "Times")]
pub struct Times {
    /// A kind each that started tasks.
    pub kinds: Vec<KindTimes>,
    /// Start of the first hour. In microseconds since 1970, on the clock of the store.
    pub since_us: u64,
}

/// How long tasks of a kind waited and ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "kind_times", title = "Times of a kind")]
pub struct KindTimes {
    /// Numbers of tasks of the kind.
    pub counts: Throughput,
    /// The hours with starts or ends, in order.
    pub hours: Vec<Hour>,
    /// The kind.
    pub kind: String,
    /// Runs, from lease to reported end, also of failed ones.
    pub run: Durations,
    /// Waits, from the adding of a task, or its time, to the lease.
    pub wait: Durations,
}

impl KindTimes {
    /// The sum and the hours of a kind.
    pub fn of(kind: &Kind, sum: &contract::Times, hours: &[contract::Times]) -> Self {
        Self {
            counts: Throughput::of(&sum.throughput),
            hours: hours.iter().map(Hour::of).collect(),
            kind: kind.to_string(),
            run: Durations::of(&sum.run),
            wait: Durations::of(&sum.wait),
        }
    }
}

/// Waits that ended and runs that ended within an hour.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "hour", title = "An hour")]
pub struct Hour {
    /// Numbers of tasks in it.
    pub counts: Throughput,
    /// Start of the hour. In microseconds since 1970, on the clock of the store.
    pub from_us: u64,
    /// Runs that ended in it.
    pub run: Durations,
    /// Waits of tasks that were leased in it.
    pub wait: Durations,
}

impl Hour {
    fn of(times: &contract::Times) -> Self {
        let (run, wait) = (Durations::of(&times.run), Durations::of(&times.wait));
        Self { counts: Throughput::of(&times.throughput), from_us: times.hour.get(), run, wait }
    }
}

/// Numbers of added and ended tasks, by kind and day in UTC: `tasks times --by-day --json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "days", title = "Days")]
pub struct Days {
    /// The kinds that had tasks added or ended.
    pub kinds: Vec<KindDays>,
    /// Start of the first day. In microseconds since 1970, on the clock of the store.
    pub since_us: u64,
}

/// Numbers of added and ended tasks of a kind, by day.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "kind_days", title = "Days of a kind")]
pub struct KindDays {
    /// The days on which something happened, in order.
    pub days: Vec<Day>,
    /// The kind.
    pub kind: String,
}

impl KindDays {
    /// The days of a kind.
    pub fn of(kind: &Kind, days: &[contract::Day]) -> Self {
        let day =
            |day: &contract::Day| Day { counts: Throughput::of(&day.throughput), from_us: day.day.get() };
        Self { days: days.iter().map(day).collect(), kind: kind.to_string() }
    }
}

/// Numbers of added and ended tasks of a day.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "day", title = "A day")]
pub struct Day {
    /// Numbers of tasks in it.
    pub counts: Throughput,
    /// Start of the day. In microseconds since 1970, on the clock of the store.
    pub from_us: u64,
}

/// Numbers of tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "throughput", title = "Throughput")]
pub struct Throughput {
    /// Added tasks.
    pub added: u64,
    /// Tasks that were cancelled.
    pub cancelled: u64,
    /// Tasks that are done.
    pub done: u64,
    /// Tasks that have failed for good.
    pub failed: u64,
    /// Runs after which their task runs again: failed ones, and those that asked for it.
    pub retried: u64,
}

impl Throughput {
    fn of(of: &contract::Throughput) -> Self {
        let &contract::Throughput { added, done, failed, cancelled, retried } = of;
        Self { added, cancelled, done, failed, retried }
    }
}

/// Durations, counted by length.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "spans", title = "Durations")]
pub struct Durations {
    /// Number of durations.
    pub count: u64,
    /// Numbers by length, shortest first; lengths that did not occur are left out.
    pub lengths: Vec<Length>,
    /// Sum, in microseconds.
    pub total_us: u64,
}

impl Durations {
    fn of(histogram: &Histogram) -> Self {
        let counts = histogram.counts.iter().enumerate().filter(|&(_, &count)| count > 0);
        let lengths = counts.map(|(place, &count)| Length { below_ms: 1 << place, count }).collect();
        let total: Micros = histogram.total;
        Self { count: histogram.number(), lengths, total_us: total.get() }
    }
}

/// Durations of about one length: at least half of `below_ms`, but for the shortest and longest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "length", title = "A length")]
pub struct Length {
    /// All were shorter than this, in milliseconds: a power of two. The last, 2147483648, has
    /// also all longer ones.
    pub below_ms: u64,
    /// Number of durations.
    pub count: u64,
}
