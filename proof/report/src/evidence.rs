//! What was measured, as the runs write it down and as it is kept in `docs/reliability.json`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Everything on the page. Each half is made by itself.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// The pace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pace: Option<Half>,
    /// Stored tasks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tasks: Option<Half>,
}

/// What was promised is a half by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Layer {
    /// The pace: G1 to G10.
    Pace,
    /// Stored tasks: T1 to T12.
    Tasks,
}

impl Report {
    /// The half of this layer.
    pub fn half(&self, layer: Layer) -> Option<&Half> {
        match layer {
            Layer::Pace => self.pace.as_ref(),
            Layer::Tasks => self.tasks.as_ref(),
        }
    }

    /// Takes this half in place of the one that is there.
    pub fn put(&mut self, layer: Layer, half: Half) {
        match layer {
            Layer::Pace => self.pace = Some(half),
            Layer::Tasks => self.tasks = Some(half),
        }
    }
}

/// All runs of one layer.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Half {
    /// When, how and on what the runs were made.
    pub machine: Machine,
    /// The simulation.
    pub simulation: Simulation,
    /// The model check, right rules and wrong ones.
    pub model: Vec<Row>,
    /// The chaos on real processes.
    pub chaos: Vec<Row>,
    /// The fuzzing.
    pub fuzz: Vec<Row>,
}

/// When, how and on what the runs were made.
#[derive(Clone, Debug, Serialize, Deserialize, clap::Args)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// The day on which the runs were made.
    #[arg(long)]
    pub date: String,
    /// The command that made them.
    #[arg(long)]
    pub command: String,
    /// The version of the compiler.
    #[arg(long)]
    pub rustc: String,
    /// The servers with their versions.
    #[arg(long)]
    pub servers: String,
    /// Operating system and kernel.
    #[arg(long)]
    pub system: String,
    /// The number of cores.
    #[arg(long)]
    pub cores: u32,
}

/// One fault that was injected, one setup that was explored, or one parser that was fed.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// `chaos`, `model` or `fuzz`; of stored tasks `task-chaos` and `task-model`.
    pub kind: String,
    /// The backend, or what read the input.
    #[serde(rename = "where")]
    pub place: String,
    /// What went wrong, or what was set up.
    pub fault: String,
    /// How often; for a model, how many states were reached.
    pub injected: u64,
    /// What was to happen.
    pub promised: String,
    /// What happened.
    pub happened: String,
    /// How many jobs started, or runs of tasks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub starts: Option<u64>,
    /// How long it took until the next job started; of a task until a run of it was done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovery_ms: Option<Recovery>,
}

/// How long it took until work went on, in milliseconds.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recovery {
    /// Half of them were shorter.
    pub median: f64,
    /// None was longer.
    pub longest: f64,
}

/// All that was simulated.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Simulation {
    /// The faults that there are.
    pub faults: Vec<Named>,
    /// Many short schedules.
    pub schedules: SimulationRun,
    /// One schedule of many shards and jobs, or of many workers and tasks.
    pub large: SimulationRun,
    /// Rules that were broken on purpose.
    pub broken_rules: Vec<BrokenRule>,
}

/// A fault or a broken rule, in words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Named {
    /// Its name on the command line.
    pub name: String,
    /// What it does.
    pub what: String,
}

/// A broken rule and the run that found it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BrokenRule {
    /// The rule.
    pub rule: Named,
    /// The run.
    pub run: SimulationRun,
}

/// What `interval-queue-sim run --json` prints.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SimulationRun {
    /// How to run it again.
    pub command: String,
    /// How many schedules were carried out.
    pub simulations: u64,
    /// How long that took.
    pub seconds: f64,
    /// How much time passed in all of them.
    pub simulated_seconds: f64,
    /// What was counted: jobs, those that started and their slots; of stored tasks tasks, runs and steps.
    #[serde(flatten)]
    pub counts: BTreeMap<String, u64>,
    /// How often each fault was injected.
    pub faults: BTreeMap<String, u64>,
    /// The promise that was broken, if one was.
    pub violation: Option<Violation>,
}

/// A broken promise.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Violation {
    /// The schedule that broke it.
    pub seed: u64,
    /// The promise, when, and what happened.
    pub what: String,
}
