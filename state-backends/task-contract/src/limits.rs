//! Bounds of commands: each command stays cheap and each number exact.

use std::time::Duration;

use interval_queue_contract::Micros;

/// The longest kind, in bytes.
pub const MAX_KIND: usize = 200;
/// The longest key or unique name, in bytes.
pub const MAX_KEY: usize = 200;
/// The longest tag, in bytes.
pub const MAX_TAG: usize = 100;
/// The most tags of a task.
pub const MAX_TAGS: usize = 32;
/// Priorities range from minus this to plus this; higher is more urgent.
pub const MAX_PRIORITY: i32 = 100;
/// No task has this priority: a worker that requires it takes none.
pub const ABOVE_ALL: i32 = MAX_PRIORITY + 1;
/// The most tasks of one `add`.
pub const MAX_ADD: usize = 20_000;
/// The most upstreams of one task.
pub const MAX_EDGES: usize = 10_000;
/// The most downstream tasks that are searched for a cycle.
pub const MAX_LOOKED_AT: u32 = 200;
/// The most kinds that a worker handles.
pub const MAX_KINDS: usize = 1_000;
/// The most tasks that one step leases, and that a worker holds.
pub const MAX_HELD: u32 = 10_000;
/// Minimum time-out of a [recount](crate::Change::Recount), which reads all tasks.
pub const RECOUNT_TIMEOUT: Duration = Duration::from_secs(60);
/// The most tasks that one command selects.
pub const MAX_PAGE: u32 = 1_000;
/// The most paused keys that one reply names.
pub const MAX_LISTED: u32 = 100;
/// The most tasks of a paused key that are counted.
pub const MAX_COUNTED: u32 = 10_000;
/// The heaviest task, in slots.
pub const MAX_WEIGHT: u32 = interval_queue_contract::MAX_WEIGHT;
/// The most attempts and retries that a policy may allow.
pub const MAX_ATTEMPTS: u32 = 1_000_000;
/// The longest error that is kept, in bytes; the rest is cut off.
pub const MAX_ERROR: usize = 4_096;
/// The most runs in a task's history: the last ones are kept.
pub const MAX_HISTORY: usize = 100;
/// The approximate maximum of payloads in one reply, in bytes.
pub const MAX_REPLY: usize = 4 << 20;
/// Default maximum size of a payload or a result: 1 MiB.
pub const DEFAULT_MAX_PAYLOAD: u32 = 1 << 20;
/// The shortest lease: 1 s.
pub const MIN_LEASE: Micros = Micros::from_millis(1_000);
/// The longest lease: a day.
pub const MAX_LEASE: Micros = Micros::from_millis(24 * 3_600_000);
/// The longest delay, deadline and retention: ten years.
pub const MAX_DELAY: Micros = Micros::from_millis(10 * 366 * 24 * 3_600_000);
/// The longest ageing, 366 days per step of priority: practically strict priorities.
pub const MAX_AGEING: Micros = Micros::from_millis(366 * 24 * 3_600_000);

/// How long after its first sending an `add` may still add tasks: 10 minutes.
pub const LATE_ADD: Micros = Micros::from_millis(10 * 60_000);
/// Minimum retention of an ended task's id, so that a repeated `add` never runs it twice: 20
/// minutes.
pub const KEEP_IDS: Micros = Micros::from_millis(20 * 60_000);
/// How long a worker is remembered past its lease, so that a late request is recognised: 1 h.
pub const KEEP_PRESENCE: Micros = Micros::from_millis(3_600_000);
/// After this many uncounted returns in a row a task backs off.
pub const MAX_RETURNS: u32 = 20;
