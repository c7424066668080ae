//! The bounds of what may be asked, so that each command costs little and each number stays exact.

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
/// Priorities go from minus this to plus this; a higher one is more urgent.
pub const MAX_PRIORITY: i32 = 100;
/// No task has this priority: a worker that takes only those with at least this takes none.
pub const ABOVE_ALL: i32 = MAX_PRIORITY + 1;
/// The most tasks of one `add`.
pub const MAX_ADD: usize = 20_000;
/// The most upstreams of one task.
pub const MAX_EDGES: usize = 10_000;
/// So many tasks that wait for another one are looked at, lest an edge makes a cycle.
pub const MAX_LOOKED_AT: u32 = 200;
/// The most kinds a worker serves.
pub const MAX_KINDS: usize = 1_000;
/// The most tasks that one step leases, and the most a worker may hold.
pub const MAX_HELD: u32 = 10_000;
/// How long a store waits for the answer to a [recount](crate::Change::Recount), at least: it goes through all tasks.
pub const RECOUNT_TIMEOUT: Duration = Duration::from_secs(60);
/// The most that one command selects.
pub const MAX_PAGE: u32 = 1_000;
/// How many paused keys one reply names.
pub const MAX_LISTED: u32 = 100;
/// How many tasks of a paused key are counted.
pub const MAX_COUNTED: u32 = 10_000;
/// The heaviest task, in slots.
pub const MAX_WEIGHT: u32 = interval_queue_contract::MAX_WEIGHT;
/// The most attempts and retries that a policy may allow.
pub const MAX_ATTEMPTS: u32 = 1_000_000;
/// The longest an error is kept, in bytes: its beginning.
pub const MAX_ERROR: usize = 4_096;
/// The most runs that a task remembers: the last ones.
pub const MAX_HISTORY: usize = 100;
/// About how many bytes of payloads one reply has at most.
pub const MAX_REPLY: usize = 4 << 20;
/// What a payload or a result may have unless the queue says otherwise: 1 MiB.
pub const DEFAULT_MAX_PAYLOAD: u32 = 1 << 20;
/// The shortest lease.
pub const MIN_LEASE: Micros = Micros::from_millis(1_000);
/// The longest lease: a day.
pub const MAX_LEASE: Micros = Micros::from_millis(24 * 3_600_000);
/// The longest delay, deadline and keep: ten years.
pub const MAX_DELAY: Micros = Micros::from_millis(10 * 366 * 24 * 3_600_000);
/// The longest ageing, 366 days a step of priority: strict, for all one can tell.
pub const MAX_AGEING: Micros = Micros::from_millis(366 * 24 * 3_600_000);

/// How old an `add` may be, from its first sending, that names ids which are not there.
pub const LATE_ADD: Micros = Micros::from_millis(10 * 60_000);
/// How long the id of an ended task is kept at least, so that a repeated `add` never runs it twice.
pub const KEEP_IDS: Micros = Micros::from_millis(20 * 60_000);
/// How long a presence is remembered past its end, so that a late request is recognised.
pub const KEEP_PRESENCE: Micros = Micros::from_millis(3_600_000);
/// So many runs in a row that were given back uncounted, and the task backs off.
pub const MAX_RETURNS: u32 = 20;
