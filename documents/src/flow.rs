//! Flows: tasks that wait for each other.

use std::collections::BTreeMap;

use interval_queue_tasks::{AddedFlow, FlowId, FlowProgress, contract, name_in_flow};
use schemars::JsonSchema;
use serde::Serialize;

/// The tasks of a flow that was added: `add --flow --json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "flow", title = "An added flow")]
pub struct Flow {
    /// The id of the flow.
    #[schemars(length(min = 1, max = 95))]
    pub flow: String,
    /// The ids of the tasks, by their names in the flow.
    pub tasks: BTreeMap<String, String>,
}

impl From<&AddedFlow> for Flow {
    fn from(added: &AddedFlow) -> Self {
        let tasks = added.iter().map(|(name, added)| (name.to_string(), added.id().to_string()));
        Self { flow: added.flow().to_string(), tasks: tasks.collect() }
    }
}

/// The status of a flow when it has ended, or when no task of it can continue: `tasks wait --flow
/// --json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "flow_status", title = "The status of a flow")]
pub struct FlowStatus {
    /// Cancelled tasks.
    pub cancelled: u64,
    /// Done tasks.
    pub done: u64,
    /// Failed tasks.
    pub failed: u64,
    /// The id of the flow.
    #[schemars(length(min = 1, max = 95))]
    pub flow: String,
    /// Stored tasks.
    #[schemars(range(min = 1))]
    pub tasks: u64,
    /// The task that failed first, or was cancelled first if none failed; null: all are done.
    pub wrong: Option<WrongTask>,
}

impl FlowStatus {
    /// The status of this flow.
    pub fn of(flow: &FlowId, progress: &FlowProgress) -> Self {
        Self {
            cancelled: progress.cancelled,
            done: progress.done,
            failed: progress.failed,
            flow: flow.to_string(),
            tasks: progress.tasks,
            wrong: progress.wrong.as_deref().map(WrongTask::of),
        }
    }
}

/// A task of a flow that did not succeed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "wrong", title = "A task that did not succeed")]
pub struct WrongTask {
    /// The reason; null: no error text.
    pub error: Option<String>,
    /// Its id.
    pub id: String,
    /// Its name in the flow; null: none.
    pub name: Option<String>,
    /// How it ended.
    #[schemars(extend("enum" = ["failed", "cancelled"]))]
    pub state: &'static str,
}

impl WrongTask {
    fn of(task: &contract::Task) -> Self {
        Self {
            error: task.error.clone(),
            id: task.id.to_string(),
            name: name_in_flow(task).map(str::to_owned),
            state: task.state.as_str(),
        }
    }
}
