//! Bounds that keep each command cheap and each number exact.

use std::time::Duration;

use interval_queue_contract::Micros;

/// Longest kind, in bytes.
pub const MAX_KIND: usize = 200;
/// Longest key or unique name, in bytes.
pub const MAX_KEY: usize = 200;
/// Longest tag, in bytes.
pub const MAX_TAG: usize = 100;
/// Most tags of a task.
pub const MAX_TAGS: usize = 32;
/// Priorities go from minus this to this; higher is more urgent.
pub const MAX_PRIORITY: i32 = 100;
/// Above all priorities: a worker that requires it takes no task.
pub const ABOVE_ALL: i32 = MAX_PRIORITY + 1;
/// Most tasks of one `add`.
pub const MAX_ADD: usize = 20_000;
/// Most upstreams of a task.
pub const MAX_EDGES: usize = 10_000;
/// Most downstreams that are searched for a cycle.
pub const MAX_CYCLE_SEARCH: u32 = 200;
/// Most kinds of a worker.
pub const MAX_KINDS: usize = 1_000;
/// Most kinds of a queue with a [policy of their own](crate::Settings::kinds).
pub const MAX_KIND_POLICIES: usize = 100;
/// Most tasks that a step leases and a worker holds.
pub const MAX_HELD: u32 = 10_000;
/// Minimum time-out of a [recount](crate::Change::Recount), which reads all tasks.
pub const RECOUNT_TIMEOUT: Duration = Duration::from_secs(60);
/// Most tasks that a command selects.
pub const MAX_PAGE: u32 = 1_000;
/// Most tasks that a command examines to select some; the next one goes on after them.
pub const MAX_SCANNED: u32 = 2_000;
/// Approximate maximum of payloads that the rules examine to select some tasks, in bytes. SQL
/// stores search the payloads of [`MAX_SCANNED`] tasks, of any size.
pub const MAX_SEARCHED: usize = 16 << 20;
/// Shortest suffix of an id that selects tasks, in characters.
pub const MIN_SUFFIX: usize = 8;
/// Most paused keys in a reply.
pub const MAX_LISTED: u32 = 100;
/// Most tasks of a paused key that are counted.
pub const MAX_COUNTED: u32 = 10_000;
/// Heaviest task, in slots.
pub const MAX_WEIGHT: u32 = interval_queue_contract::MAX_WEIGHT;
/// Most attempts and retries of a policy.
pub const MAX_ATTEMPTS: u32 = 1_000_000;
/// Most bytes of an error that are kept, from its beginning.
pub const MAX_ERROR: usize = 4_096;
/// Most runs in a task's history, the last ones.
pub const MAX_HISTORY: usize = 100;
/// Approximate maximum of payloads in a reply, in bytes.
pub const MAX_REPLY: usize = 4 << 20;
/// Default maximum of a payload or result: 1 MiB.
pub const DEFAULT_MAX_PAYLOAD: u32 = 1 << 20;
/// Shortest lease: 1 s.
pub const MIN_LEASE: Micros = Micros::from_millis(1_000);
/// Longest lease: a day.
pub const MAX_LEASE: Micros = Micros::from_millis(24 * 3_600_000);
/// Longest delay, deadline and retention: ten years.
pub const MAX_DELAY: Micros = Micros::from_millis(10 * 366 * 24 * 3_600_000);
/// Longest ageing, 366 days per step of priority: practically strict.
pub const MAX_AGEING: Micros = Micros::from_millis(366 * 24 * 3_600_000);

/// Maximum age, since its first sending, of an `add` that names new ids: 10 minutes.
pub const LATE_ADD: Micros = Micros::from_millis(10 * 60_000);
/// Minimum retention of an ended task's id, so that a repeated `add` never runs it twice: 20
/// minutes.
pub const KEEP_IDS: Micros = Micros::from_millis(20 * 60_000);
/// Retention of a worker past its lease, so that a late request is recognised: 1 h.
pub const KEEP_PRESENCE: Micros = Micros::from_millis(3_600_000);
/// Uncounted returns in a row from which on a task backs off.
pub const MAX_RETURNS: u32 = 20;
