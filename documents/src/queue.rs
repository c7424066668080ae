//! The stored tasks of a queue: what is in force, and counts.

use std::{collections::BTreeMap, time::Duration};

use interval_queue::{Micros, Snapshot};
use interval_queue_tasks::{
    Kind, Overview, QueueStatus, State,
    contract::{self, Counted},
};
use schemars::JsonSchema;
use serde::Serialize;

use crate::{Task, Worker, micros, words};

/// Numbers of tasks by what is counted, of one kind or of a queue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts(BTreeMap<Counted, u64>);

impl FromIterator<(Counted, u64)> for Counts {
    fn from_iter<T: IntoIterator<Item = (Counted, u64)>>(counts: T) -> Self {
        Self(counts.into_iter().collect())
    }
}

impl Counts {
    /// The counts of all kinds of a queue.
    pub fn of(overview: &Overview) -> Self {
        let mut counts = Self::default();
        for (_, counted, count) in &overview.counts {
            *counts.0.entry(*counted).or_default() += count;
        }
        counts
    }

    /// The counts of each kind of a queue.
    pub fn by_kind(overview: &Overview) -> BTreeMap<&Kind, Self> {
        let mut kinds: BTreeMap<&Kind, Self> = BTreeMap::new();
        for (kind, counted, count) in &overview.counts {
            kinds.entry(kind).or_default().0.insert(*counted, *count);
        }
        kinds
    }

    /// One count.
    pub fn get(&self, counted: Counted) -> u64 {
        self.0.get(&counted).copied().unwrap_or(0)
    }

    /// Tasks that have not ended.
    pub fn left(&self) -> u64 {
        let live = State::ALL.into_iter().filter(|state| !state.is_ended());
        live.map(|state| self.get(Counted::Now(state))).sum()
    }

    /// All counts by name, also zeros.
    fn document(&self) -> BTreeMap<&'static str, u64> {
        Counted::all().map(|counted| (counted.as_str(), self.get(counted))).collect()
    }
}

/// The stored tasks of a queue: `tasks --json`. All numbers were exact when the store replied.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "tasks", title = "A queue of tasks")]
pub struct Queue {
    /// Other conditions in force, the most important first.
    pub also: Vec<Condition>,
    /// Tasks in each state, and totals of all tasks that were ever added, leased, done, failed and
    /// cancelled.
    pub counts: BTreeMap<&'static str, u64>,
    /// Counts of each kind.
    pub kinds: Vec<KindCounts>,
    /// Tasks that have not ended.
    pub left: u64,
    /// The run that began first; null: none.
    pub longest_run: Option<Task>,
    /// Leased tasks whose worker's lease has ended.
    pub lost: u64,
    /// Most tasks that run at once; null: unlimited.
    #[schemars(range(min = 1))]
    pub max_running: Option<u32>,
    /// Time until the first scheduled task is due; null: none is scheduled. In microseconds.
    pub next_in_us: Option<u64>,
    /// Longest time for which a task has been ready; null: none is ready. In microseconds.
    pub oldest_ready_us: Option<u64>,
    /// Whether the queue is paused.
    pub paused: bool,
    /// Start of the pause; null: unknown or not paused. In microseconds since 1970, on the clock of
    /// the store.
    pub paused_at_us: Option<u64>,
    /// Paused keys, at most a hundred.
    pub paused_keys: Vec<PausedKey>,
    /// Paused kinds.
    pub paused_kinds: Vec<PausedKind>,
    /// The name of the queue.
    #[schemars(length(min = 1, max = 200))]
    pub queue: String,
    /// Measurement for `--over`; null: none.
    pub rate: Option<Measured>,
    /// `status` as a sentence, with what else is in force. Its words may change.
    #[schemars(length(min = 1))]
    pub reason: String,
    /// The most important condition, as a word. Later versions may add words.
    #[schemars(length(min = 1))]
    pub status: &'static str,
    /// Kinds with live tasks that no live worker handles.
    pub unserved: Vec<String>,
    /// Workers that live or died within the last hour.
    pub workers: Vec<Worker>,
}

impl Queue {
    /// The document of a queue. `longest` is the run that began first.
    pub fn of(
        queue: &str,
        overview: &Overview,
        rate: Option<&Snapshot>,
        workers: &[contract::Worker],
        longest: Option<&contract::Task>,
        measured: Option<Measured>,
    ) -> Self {
        let tasks = Tasks::of(overview, rate, longest);
        Self {
            also: tasks.also,
            counts: tasks.counts,
            kinds: Counts::by_kind(overview)
                .iter()
                .map(|(kind, counts)| KindCounts::of(overview, kind, counts))
                .collect(),
            left: tasks.left,
            longest_run: longest.map(Task::row),
            lost: tasks.lost,
            max_running: tasks.max_running,
            next_in_us: micros(overview.next.map(|at| at - overview.at)),
            oldest_ready_us: tasks.oldest_ready_us,
            paused: tasks.paused,
            paused_at_us: tasks.paused_at_us,
            paused_keys: tasks.paused_keys,
            paused_kinds: tasks.paused_kinds,
            queue: queue.to_owned(),
            rate: measured,
            reason: tasks.reason,
            status: tasks.status,
            unserved: tasks.unserved,
            workers: workers.iter().map(Worker::of).collect(),
        }
    }
}

/// The stored tasks of a queue, in `status --json` and `list --json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "tasks", title = "Stored tasks")]
pub struct Tasks {
    /// Other conditions in force, the most important first.
    pub also: Vec<Condition>,
    /// Tasks in each state, and totals of all tasks that were ever added, leased, done, failed and
    /// cancelled.
    pub counts: BTreeMap<&'static str, u64>,
    /// Tasks that have not ended.
    pub left: u64,
    /// Duration of the longest run so far; null: none runs. In microseconds.
    pub longest_run_us: Option<u64>,
    /// Leased tasks whose worker's lease has ended.
    pub lost: u64,
    /// Most tasks that run at once; null: unlimited.
    #[schemars(range(min = 1))]
    pub max_running: Option<u32>,
    /// Longest time for which a task has been ready; null: none is ready. In microseconds.
    pub oldest_ready_us: Option<u64>,
    /// Whether the queue is paused.
    pub paused: bool,
    /// Start of the pause; null: unknown or not paused. In microseconds since 1970, on the clock of
    /// the store.
    pub paused_at_us: Option<u64>,
    /// Paused keys, at most a hundred.
    pub paused_keys: Vec<PausedKey>,
    /// Paused kinds.
    pub paused_kinds: Vec<PausedKind>,
    /// `status` as a sentence, with what else is in force. Its words may change.
    #[schemars(length(min = 1))]
    pub reason: String,
    /// The most important condition, as a word. Later versions may add words.
    #[schemars(length(min = 1))]
    pub status: &'static str,
    /// Kinds with live tasks that no live worker handles.
    pub unserved: Vec<String>,
    /// Live workers.
    pub workers: u64,
}

impl Tasks {
    /// The conditions and counts of a queue. `longest` is the run that began first.
    pub fn of(overview: &Overview, rate: Option<&Snapshot>, longest: Option<&contract::Task>) -> Self {
        let status = QueueStatus::of(overview, rate);
        let counts = Counts::of(overview);
        let age = |at: Option<Micros>| micros(at.map(|at| overview.at - at));
        let kinds = overview.kinds.iter().filter(|row| row.paused);
        Self {
            also: status.also.iter().map(Condition::of).collect(),
            counts: counts.document(),
            left: counts.left(),
            longest_run_us: age(longest.and_then(|task| task.leased)),
            lost: overview.lost,
            max_running: overview.settings.max_running,
            oldest_ready_us: age(overview.oldest),
            paused: overview.paused,
            paused_at_us: micros(overview.paused_at),
            paused_keys: overview.paused_keys.iter().map(PausedKey::of).collect(),
            paused_kinds: kinds.map(PausedKind::of).collect(),
            reason: words::reason(status.conditions()),
            status: status.condition.as_str(),
            unserved: overview.unserved.iter().map(ToString::to_string).collect(),
            workers: overview.workers,
        }
    }
}

/// A condition in force on a queue of tasks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "condition", title = "A condition")]
pub struct Condition {
    /// The condition as a sentence. Its words may change.
    pub reason: String,
    /// The condition as a word.
    pub status: &'static str,
}

impl Condition {
    fn of(condition: &interval_queue_tasks::Condition) -> Self {
        Self { reason: words::condition(condition), status: condition.as_str() }
    }
}

/// A paused key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "paused_key", title = "A paused key")]
pub struct PausedKey {
    /// The key.
    pub key: String,
    /// Start of the pause; null: unknown. In microseconds since 1970, on the clock of the store.
    pub since_us: Option<u64>,
    /// Tasks that wait for it, counted up to 10,000.
    pub tasks: u64,
}

impl PausedKey {
    fn of(paused: &contract::PausedKey) -> Self {
        Self { key: paused.key.to_string(), since_us: micros(paused.since), tasks: paused.tasks }
    }
}

/// A paused kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "paused_kind", title = "A paused kind")]
pub struct PausedKind {
    /// The kind.
    pub kind: String,
    /// Start of the pause; null: unknown. In microseconds since 1970, on the clock of the store.
    pub since_us: Option<u64>,
}

impl PausedKind {
    fn of(row: &contract::KindRow) -> Self {
        Self { kind: row.kind.to_string(), since_us: micros(row.paused_at) }
    }
}

/// Counts of a kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "kind", title = "A kind of tasks")]
pub struct KindCounts {
    /// Tasks in each state, and totals.
    pub counts: BTreeMap<&'static str, u64>,
    /// The kind.
    pub kind: String,
    /// Whether it is paused.
    pub paused: bool,
    /// Whether a live worker handles it.
    pub served: bool,
}

impl KindCounts {
    fn of(overview: &Overview, kind: &Kind, counts: &Counts) -> Self {
        let row = overview.kinds.iter().find(|row| row.kind == *kind);
        Self {
            counts: counts.document(),
            kind: kind.to_string(),
            paused: row.is_some_and(|row| row.paused),
            served: row.is_some() && !overview.unserved.contains(kind),
        }
    }
}

/// Tasks that ended and were added between two reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "rate", title = "A measurement")]
pub struct Measured {
    /// Tasks added in that time.
    pub added: u64,
    /// Tasks that ended in that time.
    pub ended: u64,
    /// Time between the reads, by the clock of the store. In microseconds.
    pub over_us: u64,
}

impl Measured {
    /// The difference between two reads. `None`: the store's clock did not advance.
    pub fn between(first: (Micros, &Counts), second: (Micros, &Counts)) -> Option<Self> {
        let over = second.0 - first.0;
        let since = |counted| second.1.get(counted).saturating_sub(first.1.get(counted));
        let ended = since(Counted::EverDone) + since(Counted::EverFailed) + since(Counted::EverCancelled);
        (over > Micros::ZERO).then(|| Self { added: since(Counted::EverAdded), ended, over_us: over.get() })
    }

    /// Time between the reads.
    pub fn over(self) -> Duration {
        Duration::from_micros(self.over_us)
    }

    /// Ended tasks per second.
    pub fn per_second(self) -> f64 {
        self.ended as f64 / self.over().as_secs_f64()
    }
}
