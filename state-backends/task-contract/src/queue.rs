//! The other rows of a queue: itself, its workers, kinds, keys and schedules.

use interval_queue_contract::{Label, Micros};
use serde::{Deserialize, Serialize};

use crate::{Following, Json, Key, Kind, Settings, TaskId, WorkerId};

/// The version of the rules in this crate. A presence says which its worker knows.
pub const RULES_VERSION: u32 = 1;

/// The row of a queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queue {
    /// What holds for all who use it.
    pub settings: Settings,
    /// Whether nothing is leased.
    pub paused: bool,
    /// Since when, on the store's clock. `None`: it is not paused, or that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused_at: Option<Micros>,
    /// When the store of it was made, or found to have forgotten something. No token tells an earlier time.
    pub incarnation: Micros,
    /// The clock of leases: it never goes back, and silence counts for a quarter of a lease at most.
    pub lease_clock: Micros,
    /// The store's clock when `lease_clock` was read.
    pub seen: Micros,
    /// The latest that the store's clock was ever seen at; nothing is added before.
    pub latest: Micros,
    /// Whether the next step is to sweep: the last sweep has left something to do, or something was changed.
    pub maintenance_due: bool,
    /// The limit of keys was changed: those behind this one are still to be levelled.
    pub rebalance_after: Option<Level>,
    /// Whether events are noted; none: and none is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub followed: Option<Following>,
}

/// How far the keys are levelled after a change of their limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Level {
    /// None yet.
    Begin,
    /// Up to this one.
    After(Key),
}

/// What is known of a worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Presence {
    /// The worker.
    pub worker: WorkerId,
    /// What a person calls it.
    pub label: Label,
    /// The number of its last step.
    pub sequence: u64,
    /// How long after a step it counts as alive.
    pub lease: Micros,
    /// When its lease ends, on the clock of leases.
    pub ends: Micros,
    /// What it can do.
    pub kinds: Vec<Kind>,
    /// The rules that it knows.
    pub version: u32,
    /// Since when it is known, on the store's clock.
    pub since: Micros,
    /// When it stepped last, on the store's clock.
    pub seen: Micros,
    /// Whether it had a task after its last step.
    pub busy: bool,
    /// Whether it is dead, and its tasks were taken from it.
    pub cleared: bool,
    /// It takes only tasks with this priority or a higher one, by its last step; none: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_least: Option<i32>,
    /// It has room for so much weight, by its last step; none: for any task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub room: Option<u32>,
}

/// What is known of a kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KindRow {
    /// The kind.
    pub kind: Kind,
    /// Whether nothing of it is leased.
    pub paused: bool,
    /// Since when, on the store's clock. `None`: it is not paused, or that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused_at: Option<Micros>,
    /// Until when somebody serves it, on the clock of leases.
    pub served_until: Micros,
    /// Whether its tasks may hold keys: it is served and not paused, as far as the last sweep knows.
    pub open: bool,
    /// Whether tasks of it are still to be unserved, or to be let into their lines.
    pub needs_rebalancing: bool,
}

/// What is said of one key. There is no row of a key of which nothing is to be said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyRow {
    /// The key.
    pub key: Key,
    /// A limit of its own; 0: it is paused.
    pub limit: Option<u32>,
    /// Since when it is paused, on the store's clock. `None`: it is not paused, or that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused_at: Option<Micros>,
    /// Whether places of it are still to be given or taken.
    pub needs_rebalancing: bool,
}

/// A template and a rule that adds one task per nominal instant. When the next one is, the worker computes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schedule {
    /// Its name.
    pub name: Key,
    /// Rises with every change of it.
    pub revision: u64,
    /// When it was made: part of the ids of its tasks.
    pub incarnation: Micros,
    /// What the worker makes tasks and instants of: the rules do not look into it.
    pub definition: Json,
    /// The next nominal instant; none: never again.
    pub next: Option<Micros>,
    /// Whether it makes nothing.
    pub paused: bool,
    /// What happens at an instant that comes while the task before has not ended.
    pub overlap: Overlap,
    /// The task that it made last.
    pub last: Option<TaskId>,
    /// The instant that is kept until that one has ended.
    pub kept: Option<Micros>,
    /// Whether that one has ended.
    pub may_follow: bool,
}

/// What happens at a nominal instant that comes while the task of the one before has not ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Overlap {
    /// It makes a task all the same. The default.
    #[default]
    Allow,
    /// It makes none.
    Skip,
    /// It is kept until that one has ended; of several the last.
    Keep,
}
