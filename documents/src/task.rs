//! A stored task.

use interval_queue_tasks::{
    Json, Stored, TaskId,
    contract::{self, Settings},
};
use schemars::JsonSchema;
use serde::Serialize;

use crate::{Attempt, OwnPolicy, Policy, Progress, micros, schema};

/// A task: `tasks show --json`; `tasks list --json` prints one per line.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "task", title = "A task")]
pub struct Task {
    /// When it was added. In microseconds since 1970, on the clock of the store.
    pub added_us: u64,
    /// Earlier runs, oldest first: the last hundred. Only of `tasks show`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempts: Option<Vec<Attempt>>,
    /// Instant by which it must have started; null: none. In microseconds since 1970, on the clock
    /// of the store.
    pub deadline_us: Option<u64>,
    /// The first hundred tasks that wait for it. Only of `tasks show`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub downstreams: Option<Vec<Edge>>,
    /// When it ended; null: it has not. In microseconds since 1970, on the clock of the store.
    pub ended_us: Option<u64>,
    /// Why its last run failed, or why it cannot go on; null: no error.
    pub error: Option<String>,
    /// Failed runs, which count against `max_attempts`.
    pub failures: u32,
    /// Its id.
    #[schemars(extend("format" = "uuid"))]
    pub id: String,
    /// At most `key_limit` tasks of one key run at once; null: no key.
    pub key: Option<String>,
    /// Selects the handler.
    pub kind: String,
    /// Parts of the policy that its kind sets; null: none. Only of `tasks show`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<OwnPolicy>", extend("default" = null))]
    pub kind_policy: Option<Option<OwnPolicy>>,
    /// Lines that its runs have logged, and notes, in the order of storing: the last 64 lines of
    /// each run, and at most 64 KiB. Only of `tasks show`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<Vec<LogLine>>,
    /// When it was last leased; null: never. In microseconds since 1970, on the clock of the store.
    pub leased_us: Option<u64>,
    /// Earliest start; null: at once. In microseconds since 1970, on the clock of the store.
    pub not_before_us: Option<u64>,
    /// Whether tasks of its key run one after the other, in the order of adding.
    pub ordered: bool,
    /// Parts of the policy that it sets itself; null: none.
    pub own_policy: Option<OwnPolicy>,
    /// The input of the handler. Only if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "schema::Anything")]
    pub payload: Option<Json>,
    /// The policy in force. Only of `tasks show`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<Policy>,
    /// Higher is more urgent.
    #[schemars(range(min = -100, max = 100))]
    pub priority: i32,
    /// Progress reported by the run; null: none.
    pub progress: Option<Progress>,
    /// The output of the handler. Only if requested and stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "schema::Anything")]
    pub result: Option<Json>,
    /// Runs that asked to run again, which count against `max_retries`.
    pub retries: u32,
    /// The schedule that added it; null: none.
    pub schedule: Option<String>,
    /// The gate at which it waits, or how it ended.
    #[schemars(extend("enum" = schema::STATES))]
    pub state: &'static str,
    /// Why its worker is asked to stop the run; null: it is not.
    pub stop: Option<&'static str>,
    /// Words to find it by.
    pub tags: Vec<String>,
    /// The fencing token of the last run; null: it was never leased.
    pub token: Option<String>,
    /// The trace in which it was added, as a W3C traceparent; null: none.
    pub trace: Option<String>,
    /// Its unique name, held or not; null: none.
    pub unique: Option<String>,
    /// The first hundred tasks for which it waits or waited. Only of `tasks show`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upstreams: Option<Vec<Edge>>,
    /// Slots of the rate limit that its start takes.
    #[schemars(range(min = 1))]
    pub weight: u32,
    /// Why it does not run, as a sentence; null: it runs or has ended. Only of `tasks show`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("default" = null))]
    pub why: Option<Option<String>>,
    /// Id of the worker that runs it or ran it last; null: none.
    pub worker: Option<String>,
}

/// A line of the log of a task: of a run, or a note by an operator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "log_line", title = "A line of a log")]
pub struct LogLine {
    /// When it was written. In microseconds since 1970, on the clock of the store.
    pub at_us: u64,
    /// Number of the line among those of its run, or of the note among the notes. A gap: lines in
    /// between are not stored.
    #[schemars(range(min = 1))]
    pub number: u32,
    /// The text.
    pub text: String,
    /// The fencing token of the run; null: a note.
    pub token: Option<String>,
}

impl LogLine {
    pub(crate) fn of(line: &contract::LogLine) -> Self {
        Self {
            at_us: line.at.get(),
            number: line.number,
            text: line.text.clone(),
            token: (!line.is_note()).then(|| line.token.to_string()),
        }
    }
}

impl Task {
    /// A task as in lists, without payload and result.
    pub fn row(task: &contract::Task) -> Self {
        Self {
            added_us: task.added.get(),
            attempts: None,
            deadline_us: micros(task.deadline),
            downstreams: None,
            ended_us: micros(task.ended),
            error: task.error.clone(),
            failures: task.failures,
            id: task.id.to_string(),
            key: task.key.as_ref().map(ToString::to_string),
            kind: task.kind.to_string(),
            kind_policy: None,
            leased_us: micros(task.leased),
            log: None,
            not_before_us: micros(Some(task.not_before).filter(|at| *at > task.added)),
            ordered: task.ordered,
            own_policy: OwnPolicy::of(&task.policy),
            payload: None,
            policy: None,
            priority: task.priority,
            progress: task.progress.as_ref().map(Progress::of),
            result: None,
            retries: task.retries,
            schedule: task.schedule.as_ref().map(|nominal| nominal.schedule.to_string()),
            state: task.state.as_str(),
            stop: task.stop.map(contract::Stop::as_str),
            tags: task.tags.iter().map(ToString::to_string).collect(),
            token: task.leased.map(|_| task.token.to_string()),
            trace: task.trace.as_ref().map(ToString::to_string),
            unique: task.unique.as_ref().map(|unique| unique.name.to_string()),
            upstreams: None,
            weight: task.weight,
            why: None,
            worker: task.worker.map(|worker| worker.to_string()),
        }
    }

    /// A task as in lists, with payload and result if they were read.
    pub fn listed(stored: &Stored) -> Self {
        Self { payload: stored.payload.clone(), result: stored.result.clone(), ..Self::row(&stored.task) }
    }

    /// A task with its runs, edges and the reason why it does not run, in a queue with
    /// these settings.
    pub fn whole(stored: &Stored, settings: &Settings, why: Option<String>) -> Self {
        let task = &stored.task;
        Self {
            attempts: Some(task.history.iter().map(Attempt::of).collect()),
            kind_policy: Some(settings.kinds.get(&task.kind).and_then(OwnPolicy::of)),
            downstreams: Some(stored.downstreams.iter().map(|edge| Edge::of(edge.down, edge)).collect()),
            log: Some(stored.log.iter().map(LogLine::of).collect()),
            policy: Some(Policy::of(&settings.policy_of(task))),
            upstreams: Some(stored.upstreams.iter().map(|edge| Edge::of(edge.up, edge)).collect()),
            why: Some(why),
            ..Self::listed(stored)
        }
    }
}

/// The edge between a task and one that waits for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "edge", title = "An edge")]
pub struct Edge {
    /// Id of the other task.
    #[schemars(extend("format" = "uuid"))]
    pub id: String,
    /// Name of the result; null: the id of the upstream.
    pub name: Option<String>,
    /// Effect of an upstream that does not succeed: the downstream is cancelled, runs all the same,
    /// or waits until the upstream is retried.
    #[schemars(extend("enum" = ["cancel", "run", "wait"]))]
    pub on_failure: &'static str,
    /// `new` and `open`: the upstream has not ended; `met`: it is done; `failed`: it failed, and
    /// the downstream runs all the same; `held`: it failed, and the downstream waits for a retry;
    /// `cut`: it failed, and the downstream is cancelled.
    #[schemars(extend("enum" = ["new", "open", "met", "failed", "held", "cut"]))]
    pub state: &'static str,
}

impl Edge {
    fn of(other: TaskId, edge: &contract::Edge) -> Self {
        Self {
            id: other.to_string(),
            name: edge.name.as_ref().map(ToString::to_string),
            on_failure: edge.on_failure.as_str(),
            state: edge.state.as_str(),
        }
    }
}
