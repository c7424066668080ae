//! The other rows of a queue: itself, its workers, kinds, keys and schedules.

use interval_queue_contract::{Label, Micros};
use serde::{Deserialize, Serialize};

use crate::{Following, Json, Key, Kind, Settings, TaskId, WorkerId};

/// The version of the rules in this crate, as each worker reports it to the store.
pub const RULES_VERSION: u32 = 1;

/// The row of a queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queue {
    /// The settings in force.
    pub settings: Settings,
    /// Whether leasing is paused.
    pub paused: bool,
    /// Since when, on the store's clock. `None`: not paused, or unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused_at: Option<Micros>,
    /// When the queue was created or the store was found to be rolled back: a lower bound of new
    /// tokens.
    pub incarnation: Micros,
    /// The lease clock when it was last written, see `rules/clock.rs`.
    pub lease_clock: Micros,
    /// The store's clock at that time.
    pub seen: Micros,
    /// The latest store's clock ever seen: a lower bound of the time of adding.
    pub latest: Micros,
    /// Whether maintenance is due in the next step: the last one left some, or something was
    /// changed.
    pub maintenance_due: bool,
    /// How far keys are rebalanced after a change of `key_limit`. `None`: all are.
    pub rebalance_after: Option<Level>,
    /// The period in which events are recorded. `None`: not followed, and no event is stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub followed: Option<Following>,
}

/// How far the keys are rebalanced after a change of their limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Level {
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
    /// Its name for people.
    pub label: Label,
    /// The sequence of its last step.
    pub sequence: u64,
    /// How long its lease lasts after a step.
    pub lease: Micros,
    /// When its lease ends, on the lease clock.
    pub ends: Micros,
    /// The kinds that it handles.
    pub kinds: Vec<Kind>,
    /// The version of the rules that it knows.
    pub version: u32,
    /// Its first step, on the store's clock.
    pub since: Micros,
    /// Its last step, on the store's clock.
    pub seen: Micros,
    /// Whether it held a task after its last step.
    pub busy: bool,
    /// Whether it is dead and its tasks were taken back.
    pub cleared: bool,
    /// The lowest priority that it took in its last step. `None`: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_least: Option<i32>,
    /// The capacity that it had left after its last step. `None`: enough for any task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub room: Option<u32>,
}

/// The row of a kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KindRow {
    /// The kind.
    pub kind: Kind,
    /// Whether leasing of this kind is paused.
    pub paused: bool,
    /// Since when, on the store's clock. `None`: not paused, or unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused_at: Option<Micros>,
    /// Until when a worker handles it, on the lease clock.
    pub served_until: Micros,
    /// Whether its tasks may hold keys: it was handled and not paused at the last maintenance.
    pub open: bool,
    /// Whether tasks of it must still become unserved, or compete for their keys again.
    pub needs_rebalancing: bool,
}

/// The row of a key that has a setting of its own or needs rebalancing. Other keys have no row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyRow {
    /// The key.
    pub key: Key,
    /// Its own limit. `None`: the queue's. 0: paused.
    pub limit: Option<u32>,
    /// Since when it is paused, on the store's clock. `None`: not paused, or unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused_at: Option<Micros>,
    /// Whether permits must still be granted or withdrawn.
    pub needs_rebalancing: bool,
}

/// A template and a rule that adds one task per nominal instant. Workers compute the instants.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schedule {
    /// Its name.
    pub name: Key,
    /// Rises with every change.
    pub revision: u64,
    /// When it was created: part of the ids of its tasks.
    pub incarnation: Micros,
    /// The worker computes tasks and instants from it; the rules do not read it.
    pub definition: Json,
    /// The next nominal instant. `None`: never.
    pub next: Option<Micros>,
    /// Whether it is paused.
    pub paused: bool,
    /// The action at an instant that comes before the previous task has ended.
    pub overlap: Overlap,
    /// The last task that it made.
    pub last: Option<TaskId>,
    /// The instant that is kept until `last` has ended.
    pub kept: Option<Micros>,
    /// Whether the task of the kept instant may be made, because `last` has ended.
    pub may_follow: bool,
}

/// The action at a nominal instant that comes before the previous task has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Overlap {
    /// Make a task all the same. The default.
    #[default]
    Allow,
    /// Make no task.
    Skip,
    /// Keep the instant until the previous task has ended; of several only the last.
    Keep,
}
