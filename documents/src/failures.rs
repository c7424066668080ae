//! Failed tasks, grouped by similar error texts.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

/// Tasks that failed, for good or until a retry, grouped by similar error texts: `tasks failures
/// --json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "failures", title = "Failures")]
pub struct Failures {
    /// Tasks in the groups that failed for good.
    pub failed: u64,
    /// The groups, the largest first, at most a hundred.
    pub groups: Vec<Failure>,
    /// Tasks in the groups that failed and will be retried, or are being retried.
    pub retrying: u64,
    /// Tasks outside the groups.
    pub ungrouped: u64,
}

impl From<&interval_queue_tasks::Failures> for Failures {
    fn from(failures: &interval_queue_tasks::Failures) -> Self {
        let groups: Vec<_> = failures.groups.iter().map(Failure::from).collect();
        Self {
            failed: groups.iter().map(|group| group.count).sum(),
            retrying: groups.iter().map(|group| group.retrying).sum(),
            groups,
            ungrouped: failures.ungrouped,
        }
    }
}

/// Failed tasks whose error texts differ only in ids: numbers, hexadecimal words, UUIDs, times,
/// addresses, or quoted text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "failure", title = "A group of failures")]
pub struct Failure {
    /// The value for `--error` that selects the group; null: the errors have no text in common.
    #[schemars(length(min = 1))]
    pub common: Option<String>,
    /// Tasks that failed for good.
    pub count: u64,
    /// Id of the task with `text`.
    #[schemars(extend("format" = "uuid"))]
    pub example: String,
    /// When the first one failed. In microseconds since 1970, on the clock of the store.
    pub first_us: u64,
    /// Tasks of each kind.
    pub kinds: BTreeMap<String, u64>,
    /// When the last one failed. In microseconds since 1970, on the clock of the store.
    pub last_us: u64,
    /// Tasks that failed and will be retried, or are being retried.
    pub retrying: u64,
    /// Failed tasks that `common` selects: more than `count` if errors of other groups contain it;
    /// 0: `common` is null.
    pub selects: u64,
    /// Error text of one of the tasks.
    pub text: String,
}

impl From<&interval_queue_tasks::Failure> for Failure {
    fn from(group: &interval_queue_tasks::Failure) -> Self {
        Self {
            common: group.common.clone(),
            count: group.count,
            example: group.example.to_string(),
            first_us: group.first.get(),
            kinds: group.kinds.iter().map(|(kind, count)| (kind.to_string(), *count)).collect(),
            last_us: group.last.get(),
            retrying: group.retrying,
            selects: group.selects,
            text: group.text.clone(),
        }
    }
}
