//! Names of queues, states and tasks as names of files.

use std::fmt::Write;

use interval_queue_contract::QueueName;
use interval_queue_task_contract::{State, TaskId};
use uuid::Uuid;

/// So many tasks share a directory.
pub(super) const SHARD: i64 = 1_000;

/// The directory of new files.
pub(super) const TEMPORARY: &str = "tmp";
pub(super) const DROP: &str = "drop";
pub(super) const ASIDE: &str = "set-aside";

/// Where files of tasks are.
pub(super) const STATES: [State; 9] = [
    State::Added,
    State::Waiting,
    State::Scheduled,
    State::Blocked,
    State::Ready,
    State::Leased,
    State::Done,
    State::Failed,
    State::Cancelled,
];

/// What lies beside the queues.
const TAKEN: [&str; 8] =
    ["README", "layout.json", "pace.json", "index.db", "lock", "lock-gate", "done", TEMPORARY];
/// File systems know no longer names than 255 bytes.
const LONGEST: usize = 240;
/// What the place of a file has behind the name of its queue, usually at most.
const PLACE: usize = 64;
/// Makes a name out of one that is too long.
const LONG: Uuid = Uuid::from_u128(0x4c7f_0b6e_1d52_5e9a_8f31_77aa_20d9_6b14);

/// The directory of a queue: its name, with what a file system or a shell would take otherwise as `%XX`.
pub(super) fn folder(queue: &QueueName) -> String {
    let name = queue.as_str();
    let is_taken = TAKEN.iter().any(|taken| name.starts_with(taken));
    let mut escaped = String::with_capacity(name.len());
    for (at, sign) in name.char_indices() {
        let is_odd =
            sign.is_control() || "/\\%:*?\"<>|".contains(sign) || (at == 0 && (sign == '.' || is_taken));
        if is_odd {
            let mut bytes = [0; 4];
            for byte in sign.encode_utf8(&mut bytes).bytes() {
                escaped.push_str(&format!("%{byte:02X}"));
            }
        } else {
            escaped.push(sign);
        }
    }
    if escaped.len() <= LONGEST {
        return escaped;
    }
    let fits = (0..=LONGEST - 40).rev().find(|&at| escaped.is_char_boundary(at)).unwrap_or(0);
    format!("{}%-{}", &escaped[..fits], Uuid::new_v5(&LONG, name.as_bytes()))
}

/// The queue that has this directory, unless its name was too long: then `queue.json` says it.
pub(super) fn queue_of(folder: &str) -> Option<QueueName> {
    let name = interval_queue_store::decoded(folder, "the name").ok()?;
    QueueName::new(name.into_owned()).ok().filter(|queue| self::folder(queue) == folder)
}

/// The name of a bounded directory.
pub(super) fn shard(folder: &str, state: State, shard: i64) -> String {
    format!("{folder}/{state}/{shard:06}")
}

/// Where the file of a task is. One that was purged has none.
pub(super) fn place(folder: &str, state: State, number: i64, id: TaskId) -> Option<String> {
    if state == State::Purged {
        return None;
    }
    let mut place = String::with_capacity(folder.len() + PLACE);
    let _ = write!(place, "{folder}/{state}/{:06}/{id}.json", number / SHARD);
    Some(place)
}

/// The nanoseconds of the time of modification that mark the file of a task as known: a multiple of 100, as
/// fine as most file systems have them.
pub(super) fn mark(id: TaskId) -> u32 {
    let number = id.uuid().as_u128();
    let mixed = (number as u64 ^ (number >> 64) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((mixed >> 32) % 10_000_000) as u32 * 100
}

/// The mark of the task whose file has this name.
pub(super) fn mark_in(place: &str) -> Option<u32> {
    let stem = place.rsplit('/').next()?.strip_suffix(".json")?;
    stem.parse().ok().map(mark)
}
