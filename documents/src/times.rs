//! How long tasks waited and ran.

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
        Self { from_us: times.hour.get(), run, wait }
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
