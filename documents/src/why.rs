//! Why a task does not run.

use schemars::JsonSchema;
use serde::Serialize;

use crate::{Task, Worker, schema};

/// The reason why a task waits, or how it ended: `tasks why --json`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "why", title = "Why a task does not run")]
pub struct Why {
    /// Tasks ahead of it, the nearest first, at most ten: tasks that it waits for, or that start
    /// before it.
    #[schemars(length(max = 10))]
    pub ahead: Vec<Task>,
    /// Number of tasks ahead of it; null: more than the thousand that were read.
    pub ahead_count: Option<u64>,
    /// The gate at which it waits, `leased`, or how it ended. Later versions may add words.
    #[schemars(extend("examples" = schema::GATES))]
    pub gate: &'static str,
    /// The latest time at which it continues: its time, the end of a hold of the rate, or the end
    /// of its worker's lease; null: unknown. In microseconds since 1970, on the clock of the store.
    pub latest_us: Option<u64>,
    /// The next event, as a sentence.
    pub next: String,
    /// Why it does not run, as a sentence.
    pub reason: String,
    /// The task, as in lists.
    pub task: Task,
    /// The worker that runs it, or the live workers that can let it continue.
    pub workers: Vec<Worker>,
}
