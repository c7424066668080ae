//! Changes of state, as `tasks follow` prints them.

use interval_queue::Micros;
use interval_queue_tasks::{State, TaskId, contract};
use schemars::JsonSchema;
use serde::Serialize;

use crate::LogLine;

/// A task changed its state: `tasks follow` prints one per line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "event", title = "An event")]
pub struct Event {
    /// When, in microseconds since 1970, on the clock of the store.
    pub at_us: u64,
    /// How often the task was leased by then.
    pub attempt: u32,
    /// Why a run failed, or why the task was cancelled; null: no error.
    pub error: Option<String>,
    /// The state before; null: it was not stored.
    pub from: Option<&'static str>,
    /// The kind of the task.
    pub kind: String,
    /// The id of the task.
    pub task: String,
    /// The state after; null: it was purged.
    pub to: Option<&'static str>,
    /// Id of the worker whose run began or ended; null: none.
    pub worker: Option<String>,
}

impl From<&contract::Event> for Event {
    fn from(event: &contract::Event) -> Self {
        Self {
            at_us: event.at.get(),
            attempt: event.attempt,
            error: event.error.clone(),
            from: event.from.map(State::as_str),
            kind: event.kind.to_string(),
            task: event.task.to_string(),
            to: event.to.map(State::as_str),
            worker: event.worker.map(|worker| worker.to_string()),
        }
    }
}

/// A new line in the log of a task: `tasks follow --log` prints one per line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "logged_line", title = "A new line of a log")]
pub struct LoggedLine {
    /// The line.
    #[serde(flatten)]
    pub line: LogLine,
    /// The id of the task.
    pub task: String,
}

impl LoggedLine {
    /// A line of this task.
    pub fn of(task: TaskId, line: &contract::LogLine) -> Self {
        Self { line: LogLine::of(line), task: task.to_string() }
    }
}

/// Events may be missing before this line: `tasks follow` read too late.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "missed_events", title = "Missed events")]
pub struct MissedEvents {
    /// When it read again, in microseconds since 1970, on the clock of the store.
    pub at_us: u64,
    /// Always true.
    #[schemars(extend("const" = true))]
    pub missed: bool,
}

impl MissedEvents {
    /// Missed events before this instant.
    pub fn at(at: Micros) -> Self {
        Self { at_us: at.get(), missed: true }
    }
}
