//! Runs of a task, and the policy of its failures.

use interval_queue::Micros;
use interval_queue_tasks::contract;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{micros, words};

/// A past run of a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "attempt")]
pub struct Attempt {
    /// How the run ended: reported as done, failed with an `error`, asked for a `retry`, was
    /// given back (`released`), was stopped after its deadline (`stopped`), its process `died`, or
    /// its worker was `lost`.
    #[schemars(extend("enum" = ["done", "error", "retry", "released", "stopped", "died", "lost"]))]
    pub end: &'static str,
    /// When the store received the end. In microseconds since 1970, on the clock of the store.
    pub ended_us: u64,
    /// The error text; null: none.
    pub error: Option<String>,
    /// When the run was leased; null: unknown. In microseconds since 1970, on the clock of the
    /// store.
    pub leased_us: Option<u64>,
    /// The fencing token of the run. Tokens of later runs are higher.
    pub token: String,
    /// Id of the worker; null: unknown.
    pub worker: Option<String>,
}

impl Attempt {
    pub(crate) fn of(run: &contract::Attempt) -> Self {
        Self {
            end: words::end(run.end),
            ended_us: run.ended.get(),
            error: run.error.clone(),
            leased_us: micros(run.leased),
            token: run.token.to_string(),
            worker: run.worker.map(|worker| worker.to_string()),
        }
    }
}

/// Progress reported by a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "progress")]
pub struct Progress {
    /// Amount done, of `total`.
    pub done: u64,
    /// The current activity.
    pub text: String,
    /// Total amount; 0: unknown.
    pub total: u64,
}

impl Progress {
    pub(crate) fn of(progress: &contract::Progress) -> Self {
        Self { done: progress.done, text: progress.text.clone(), total: progress.total }
    }
}

/// How often a task runs, and the waits in between.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "policy")]
pub struct Policy {
    /// Wait after the first failure; it doubles with each. In microseconds.
    pub backoff_us: u64,
    /// Failures after which the task has failed.
    #[schemars(range(min = 1))]
    pub max_attempts: u32,
    /// Longest wait. In microseconds.
    pub max_backoff_us: u64,
    /// How often a run may ask to run again.
    pub max_retries: u32,
    /// Longest run; null: unlimited. In microseconds.
    #[schemars(range(min = 1))]
    pub timeout_us: Option<u64>,
}

impl Policy {
    pub(crate) fn of(policy: &contract::Policy) -> Self {
        Self {
            backoff_us: policy.backoff.get(),
            max_attempts: policy.max_attempts,
            max_backoff_us: policy.max_backoff.get(),
            max_retries: policy.max_retries,
            timeout_us: micros(policy.timeout),
        }
    }
}

/// Parts of the policy that a task or a kind sets itself; the others of a task are those of its kind,
/// or else of the queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "own_policy")]
pub struct OwnPolicy {
    /// Wait after the first failure; it doubles with each. In microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backoff_us: Option<u64>,
    /// Failures after which the task has failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_attempts: Option<u32>,
    /// Longest wait. In microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_backoff_us: Option<u64>,
    /// How often a run may ask to run again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_retries: Option<u32>,
    /// Longest run. In microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub timeout_us: Option<u64>,
}

impl OwnPolicy {
    /// `None`: nothing is set.
    pub(crate) fn of(own: &contract::PolicyOverride) -> Option<Self> {
        (!own.is_empty()).then(|| Self {
            backoff_us: micros(own.backoff),
            max_attempts: own.max_attempts,
            max_backoff_us: micros(own.max_backoff),
            max_retries: own.max_retries,
            timeout_us: micros(own.timeout),
        })
    }
}

impl From<&OwnPolicy> for contract::PolicyOverride {
    fn from(own: &OwnPolicy) -> Self {
        Self {
            max_attempts: own.max_attempts,
            max_retries: own.max_retries,
            backoff: own.backoff_us.map(Micros::new),
            max_backoff: own.max_backoff_us.map(Micros::new),
            timeout: own.timeout_us.map(Micros::new),
        }
    }
}
