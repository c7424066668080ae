//! The other rows of a queue: itself, its workers, kinds, keys and schedules.

use interval_queue_contract::{Label, Micros};
use serde::{Deserialize, Serialize};

use crate::{Following, Json, Key, Kind, Settings, TaskId, WorkerId};

/// Version of the rules in this crate; [`Presence::version`] keeps each worker's.
pub const RULES_VERSION: u32 = 1;

/// The row of a queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queue {
    /// The settings in force.
    pub settings: Settings,
    /// Whether leasing is paused.
    pub paused: bool,
    /// When it was paused, on the store's clock. `None`: not paused, or unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused_at: Option<Micros>,
    /// When the queue was created, or its store found to be rolled back: lower bound of new tokens.
    pub incarnation: Micros,
    /// The lease clock when last written, see `rules/clock.rs`.
    pub lease_clock: Micros,
    /// The store's clock when `lease_clock` was written.
    pub seen: Micros,
    /// Latest store's clock seen: lower bound of times of adding.
    pub latest: Micros,
    /// Whether the next step does full maintenance.
    pub maintenance_due: bool,
    /// How far keys are rebalanced after a change of `key_limit`. `None`: all are.
    pub rebalance_after: Option<RebalanceCursor>,
    /// When events are recorded. `None`: no follower, and no stored event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub followed: Option<Following>,
}

/// How far keys are rebalanced after a change of `key_limit`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RebalanceCursor {
    /// No key yet.
    Begin,
    /// All keys up to this one.
    After(Key),
}

/// The row of a worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Presence {
    /// The worker.
    pub worker: WorkerId,
    /// The worker's name for people.
    pub label: Label,
    /// Sequence of the last step.
    pub sequence: u64,
    /// How long the lease lasts after a step.
    pub lease: Micros,
    /// When the lease ends, on the lease clock.
    pub ends: Micros,
    /// Kinds that the worker handles.
    pub kinds: Vec<Kind>,
    /// Version of the worker's rules.
    pub version: u32,
    /// First step, on the store's clock.
    pub since: Micros,
    /// Last step, on the store's clock.
    pub seen: Micros,
    /// Whether the worker held a task after its last step.
    pub busy: bool,
    /// Whether the worker is dead and its tasks were taken back.
    pub cleared: bool,
    /// Lowest priority that the worker takes. `None`: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_least: Option<i32>,
    /// Free capacity after the last step. `None`: enough for any task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub room: Option<u32>,
}

impl Presence {
    pub(crate) fn name(&self) -> String {
        match self.label.as_str() {
            "" => self.worker.to_string(),
            label => label.to_owned(),
        }
    }
}

/// The row of a kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KindRow {
    /// The kind.
    pub kind: Kind,
    /// Whether leasing is paused.
    #[serde(default)]
    pub paused: bool,
    /// When it was paused, on the store's clock. `None`: not paused, or unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused_at: Option<Micros>,
    /// Until when a worker handles it, on the lease clock.
    pub served_until: Micros,
    /// Whether its tasks may hold keys: handled and not paused at the last maintenance.
    #[serde(default)]
    pub open: bool,
    /// Whether its tasks must still become unserved, or compete for keys again.
    #[serde(default)]
    pub needs_rebalancing: bool,
}

/// The row of a key with its own limit or in need of rebalancing; others have none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyRow {
    /// The key.
    pub key: Key,
    /// Own limit. `None`: the queue's. 0: paused.
    pub limit: Option<u32>,
    /// When it was paused, on the store's clock. `None`: not paused, or unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused_at: Option<Micros>,
    /// Whether permits must still be granted or withdrawn.
    pub needs_rebalancing: bool,
}

/// A template and a rule that adds one task per nominal instant, which workers compute.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schedule {
    /// The name.
    pub name: Key,
    /// Rises with every change.
    pub revision: u64,
    /// When it was created: part of its tasks' ids.
    pub incarnation: Micros,
    /// Template and rule, which only workers read.
    pub definition: Json,
    /// Next nominal instant. `None`: never.
    pub next: Option<Micros>,
    /// Whether the schedule is paused.
    #[serde(default)]
    pub paused: bool,
    /// Action if the previous task has not ended.
    pub overlap: Overlap,
    /// The task made last.
    pub last: Option<TaskId>,
    /// The instant kept until `last` has ended.
    pub kept: Option<Micros>,
    /// Whether `last` has ended, so that the kept instant is due.
    #[serde(default)]
    pub may_follow: bool,
}

/// Action at an instant when the previous task has not ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Overlap {
    /// Make a task all the same. The default.
    #[default]
    Allow,
    /// Make no task.
    Skip,
    /// Keep the instant until the previous task has ended; of several the last.
    Keep,
}

impl Overlap {
    /// Name in stores.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Skip => "skip",
            Self::Keep => "keep",
        }
    }
}
