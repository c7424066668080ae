//! A queue with a rate limit, as `status` and `list` print it.

use interval_queue::{Micros, Presence, Record, ShardId, Snapshot, StartStatus};
use schemars::JsonSchema;
use serde::Serialize;

use crate::{Tasks, schema};

/// A queue with a rate limit: `status --json`. Durations are counted from the reply of the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "queue", title = "A queue")]
pub struct QueueStatus {
    /// The highest ticket that has started; 0: none yet. Never above `ticket`.
    pub current: u64,
    /// Time until the next slot is free, apart from a hold; 0: now. In microseconds.
    pub free_in_us: u64,
    /// Time until the hold ends; 0: not held. In microseconds.
    pub held_for_us: u64,
    /// Time between two starts in the long run, by the fastest rate; up to 366 days. In
    /// microseconds.
    #[schemars(range(min = 1, max = 31_622_400_000_000_u64))]
    pub interval_us: u64,
    /// Most jobs of all shards that run at once; null: unlimited.
    #[schemars(range(min = 1))]
    pub max_running: Option<u32>,
    /// Tickets above `current`: at most this number of jobs wait. Some may belong to processes that
    /// have ended.
    pub outstanding: u64,
    /// Whether the queue is paused.
    pub paused: bool,
    /// The name of the queue.
    #[schemars(length(min = 1, max = 200))]
    pub queue: String,
    /// All rates, the fastest first. A start keeps every one of them.
    #[schemars(length(min = 1, max = 8))]
    pub rates: Vec<Rate>,
    /// `status` as a sentence. Its words may change.
    #[schemars(length(min = 1))]
    pub reason: String,
    /// Running jobs of live shards. Without a running limit not all are counted.
    pub running: u64,
    /// Shards with waiting or running jobs, by their lowest ticket; shards with running jobs only
    /// come last.
    pub shards: Vec<Shard>,
    /// The reason why the next start waits. `paused`: a resume; `held`: the end of a hold; `empty`: no
    /// live shard has a waiting job; `at_max_running`: the end of a running job; `next`: the slot
    /// of the lowest ticket. Later versions may add words: read them as `other`.
    #[schemars(extend("enum" = ["paused", "held", "empty", "at_max_running", "next", "other"]))]
    pub status: &'static str,
    /// The stored tasks; null: none. `interval-queue schema tasks` describes more of them.
    pub tasks: Option<Tasks>,
    /// The last ticket taken; 0: none yet.
    pub ticket: u64,
}

impl QueueStatus {
    /// The status of a queue.
    pub fn of(queue: &str, snapshot: &Snapshot, tasks: Option<Tasks>) -> Self {
        let record = &snapshot.record;
        let start_status = snapshot.start_status();
        Self {
            current: record.current.get(),
            free_in_us: (record.meters.next_slot(Micros::ZERO, 1) - snapshot.at).get(),
            held_for_us: (record.held_until - snapshot.at).get(),
            interval_us: record.interval().get(),
            max_running: record.max_running,
            outstanding: record.ticket.behind(record.current),
            paused: record.paused,
            queue: queue.to_owned(),
            rates: Rate::all(snapshot),
            reason: start_status.to_string(),
            running: snapshot.running(),
            shards: in_order(record).into_iter().map(|(id, shard)| Shard::of(snapshot, id, shard)).collect(),
            status: word(&start_status),
            tasks,
            ticket: record.ticket.get(),
        }
    }
}

/// The shards in the order in which they start; shards with running jobs only come last.
pub fn in_order(record: &Record) -> Vec<(&ShardId, &Presence)> {
    let mut shards: Vec<_> = record.shards.iter().collect();
    shards.sort_by_key(|(_, presence)| (presence.head.is_none(), presence.head));
    shards
}

fn word(status: &StartStatus) -> &'static str {
    match status {
        StartStatus::Paused => "paused",
        StartStatus::Held { .. } => "held",
        StartStatus::Empty => "empty",
        StartStatus::AtMaxRunning { .. } => "at_max_running",
        StartStatus::Next { .. } => "next",
        _ => "other",
    }
}

/// A rate of a queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "rate", title = "A rate")]
pub struct Rate {
    /// Most starts at once after a time without starts.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub burst: u32,
    /// Time until the whole burst is available again; 0: it is. In microseconds.
    pub full_in_us: u64,
    /// Time between two starts in the long run. In microseconds.
    #[schemars(range(min = 1, max = 31_622_400_000_000_u64))]
    pub interval_us: u64,
}

impl Rate {
    fn all(snapshot: &Snapshot) -> Vec<Self> {
        let meters = snapshot.record.meters.iter();
        let rate = meters.map(|meter| Self {
            burst: meter.burst,
            full_in_us: (meter.tat - snapshot.at).get(),
            interval_us: meter.interval.get(),
        });
        rate.collect()
    }
}

/// A process, or a part of one, with waiting or running jobs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "shard", title = "A shard")]
pub struct Shard {
    /// Its lowest outstanding ticket; null: it waits for nothing.
    #[schemars(range(min = 1))]
    pub head: Option<u64>,
    /// Its unique id.
    #[schemars(length(min = 1))]
    pub id: String,
    /// Its name for people; for `run` without `--label`: `CMD pid N`.
    #[schemars(length(max = 128))]
    pub label: String,
    /// Time until its lease ends unless it renews it; 0: it has ended. In microseconds.
    pub lease_left_us: u64,
    /// Its running jobs. Without a running limit not all are counted.
    pub running: u32,
}

impl Shard {
    fn of(snapshot: &Snapshot, id: &ShardId, presence: &Presence) -> Self {
        Self {
            head: presence.head.map(|head| head.get()),
            id: id.as_str().to_owned(),
            label: presence.label.to_string(),
            lease_left_us: (presence.expires_at - snapshot.at).get(),
            running: presence.running,
        }
    }
}

/// A queue of stored tasks without a rate limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "unpaced", title = "A queue without a rate limit", transform = schema::without_interval)]
pub struct Unpaced {
    /// The name of the queue.
    #[schemars(length(min = 1, max = 200))]
    pub queue: String,
    /// `status` as a sentence. Its words may change.
    #[schemars(length(min = 1))]
    pub reason: String,
    /// The `status` of its stored tasks.
    #[schemars(length(min = 1))]
    pub status: &'static str,
    /// Its stored tasks.
    pub tasks: Tasks,
}

impl Unpaced {
    /// A queue of stored tasks alone.
    pub fn of(queue: &str, tasks: Tasks) -> Self {
        Self { queue: queue.to_owned(), reason: tasks.reason.clone(), status: tasks.status, tasks }
    }
}

/// A queue that cannot be read, in `list --json`. Its exit code reports it, too.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "unreadable", title = "A queue that cannot be read", transform = schema::without_status)]
pub struct Unreadable {
    /// The reason, in one line.
    #[schemars(length(min = 1))]
    pub error: String,
    /// The name of the queue.
    #[schemars(length(min = 1, max = 200))]
    pub queue: String,
}
