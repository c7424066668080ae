//! What a benchmark found, as it is stored. Everything is of single runs; medians are taken by whoever shows
//! them.
//!
//! Instants and durations are microseconds unless their name says otherwise. A fraction of 1 is the whole.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// All that one run of the benchmark found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The day it ended, as `2026-01-31`.
    pub day: String,
    /// The command that brought it.
    pub command: String,
    pub machine: Machine,
    /// Programs and libraries that were measured, and their versions.
    pub versions: BTreeMap<String, String>,
    pub paces: Vec<Pace>,
    pub idle: Vec<Idle>,
    pub crowds: Vec<Crowd>,
    pub lines: Vec<LongLine>,
    /// The section of each store on stored tasks, by the store's name. Another benchmark prints them.
    #[serde(default)]
    pub tasks: BTreeMap<String, String>,
}

/// Where it ran.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    pub processor: String,
    pub cores: u32,
    pub memory_gib: u32,
    pub system: String,
    /// The file system of the disk.
    pub disk: String,
}

/// One contender in one scenario, several times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pace {
    /// `interval-queue`, or the name of another library.
    pub contender: String,
    /// What the processes share: `redis`, `file on tmpfs`, `file on disk`, `memory`, `sqlite`, `none`.
    pub state: String,
    pub scenario: Scenario,
    pub interval: u64,
    pub processes: u32,
    /// Of all processes together.
    pub jobs: u64,
    pub runs: Vec<Run>,
    /// The first two thousand starts of one run, for pictures: the process and when, the first at zero.
    pub sample: Vec<(u32, u64)>,
    /// Why there are fewer runs than were asked for, or none.
    pub failure: Option<String>,
}

/// What is done to a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scenario {
    /// Twice as many jobs are offered as fit.
    Saturated,
    /// Half as many jobs are offered as fit, at random instants.
    Sparse,
    /// Saturated, and one process is killed while jobs wait in it.
    Killed,
    /// Saturated, over a network with a round trip of 40 ms.
    Far,
    /// All jobs are in the queue before it is let go.
    Ahead,
}

/// What one run brought.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Jobs that started.
    pub started: u64,
    /// Jobs of the processes that lived to the end which never started.
    pub lost: u64,
    /// Jobs that started more than once.
    pub twice: u64,
    /// (starts − 1) × interval ÷ (last start − first start).
    pub rate: f64,
    /// The time between a start and the next one, of whatever process.
    pub gaps: Spread,
    /// Gaps under 90 % of the interval.
    pub close: u64,
    /// Pairs of jobs of which one was in the queue before the other was offered, and started after it.
    pub inversions: u64,
    /// How far after their slots jobs started.
    pub lateness: Option<Spread>,
    /// The shortest time between two slots, by the clock of the state.
    pub closest_slots: Option<u64>,
    /// Commands on the state per job that started.
    pub operations: Option<f64>,
    /// CPU time of all processes per job.
    pub cpu: Option<f64>,
    /// CPU time of the server per job.
    pub server_cpu: Option<f64>,
    /// How much of the time of all processors others used meanwhile; none: nobody knows.
    pub others: Option<f64>,
    /// From the call that offered a job to its start.
    pub waited: Option<Spread>,
    pub kill: Option<Kill>,
}

/// What happened after one of the processes was killed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Kill {
    /// The jobs that waited in it.
    pub waiting: u64,
    /// When, after the first start.
    #[serde(default)]
    pub at: u64,
    /// How long until its lease had ended; for others the whole rest.
    pub lease: u64,
    /// Slots that passed unused until then.
    pub slots_lost: i64,
    /// The slots until then that belonged to jobs of the killed process; none: nobody knows.
    #[serde(default)]
    pub own_slots: Option<u64>,
    /// The rate from the kill to the end of the lease, and from then on.
    pub rate_during: Option<f64>,
    pub rate_after: Option<f64>,
}

/// Some figures of a distribution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    pub min: f64,
    pub p1: f64,
    pub p50: f64,
    pub p99: f64,
    pub max: f64,
}

/// Adding one job to a queue with nothing to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Idle {
    pub state: String,
    pub samples: u64,
    /// From `add` to the first poll of the job.
    pub start: Spread,
    /// The same command on the same state by itself, after the same pause.
    pub round_trip: Spread,
    pub operations: f64,
    /// System calls of a process whose last job is done, in `quiet_seconds`; none: not measured.
    pub system_calls: Option<u64>,
    pub quiet_seconds: u64,
}

/// Many shards that wait on one queue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Crowd {
    pub state: String,
    pub shards: u64,
    pub processes: u32,
    pub interval: u64,
    pub seconds: f64,
    pub rate: f64,
    pub gaps: Spread,
    pub close: u64,
    pub operations_per_second: f64,
    pub operations: f64,
    /// Of one core.
    pub server_share: Option<f64>,
    pub cpu_share: f64,
    /// How large the record is.
    pub record_bytes: Option<u64>,
    pub failure: Option<String>,
}

/// Many jobs that wait in one shard.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LongLine {
    pub state: String,
    pub jobs: u64,
    pub bytes_per_job: f64,
    pub add_seconds: f64,
    pub cancel_seconds: f64,
    /// Starts per second when the pace allows more than the processor.
    pub starts_per_second: Option<f64>,
}
