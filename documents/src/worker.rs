//! Workers of a queue.

use interval_queue::Micros;
use interval_queue_tasks::contract;
use schemars::JsonSchema;
use serde::Serialize;

use crate::{Task, micros};

/// A process that runs tasks.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "worker", title = "A worker")]
pub struct Worker {
    /// Lowest priority that it takes, because it is under load; null: any.
    pub at_least: Option<i32>,
    /// Capacity that is left, as the weight of tasks; null: unlimited.
    pub free_capacity: Option<u32>,
    /// Ids of the tasks that it holds, at most a hundred.
    pub holds: Vec<String>,
    /// Its id.
    #[schemars(extend("format" = "uuid"))]
    pub id: String,
    /// Kinds that it handles.
    pub kinds: Vec<String>,
    /// Its name for people, such as host and process.
    pub label: String,
    /// Time until its lease ends; null: it has ended, and its tasks go to other workers. In
    /// microseconds.
    pub lease_left_us: Option<u64>,
    /// Its running tasks, those that began first first, at most a hundred. Only of `tasks
    /// workers`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runs: Option<Vec<Task>>,
    /// When it last polled. In microseconds since 1970, on the clock of the store.
    pub seen_us: u64,
    /// When it started. In microseconds since 1970, on the clock of the store.
    pub since_us: u64,
}

impl Worker {
    /// A worker without its running tasks.
    pub fn of(worker: &contract::Worker) -> Self {
        let presence = &worker.presence;
        Self {
            at_least: presence.at_least,
            free_capacity: presence.room,
            holds: worker.holds.iter().map(|(id, _)| id.to_string()).collect(),
            id: presence.worker.to_string(),
            kinds: presence.kinds.iter().map(ToString::to_string).collect(),
            label: presence.label.to_string(),
            lease_left_us: micros(worker.alive_for),
            runs: None,
            seen_us: presence.seen.get(),
            since_us: presence.since.get(),
        }
    }
}

/// Workers that live or died within the last hour: `tasks workers --json`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "workers", title = "Workers")]
pub struct Workers {
    /// The clock of the store, in microseconds since 1970.
    pub at_us: u64,
    /// The workers, by id.
    pub workers: Vec<Worker>,
}

impl Workers {
    /// The workers at this instant, with their running tasks.
    pub fn of(at: Micros, workers: &[contract::Worker], runs: &[contract::Task]) -> Self {
        let with_runs = |worker: &contract::Worker| {
            let own = runs.iter().filter(|task| task.worker == Some(worker.presence.worker));
            Worker { runs: Some(own.map(Task::row).collect()), ..Worker::of(worker) }
        };
        Self { at_us: at.get(), workers: workers.iter().map(with_runs).collect() }
    }
}
