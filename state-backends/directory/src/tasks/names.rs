//! File names of queues, states and tasks.

use std::fmt::Write;

use interval_queue_contract::QueueName;
use interval_queue_task_contract::{State, TaskId};
use uuid::Uuid;

/// Tasks per directory.
pub(super) const SHARD_SIZE: i64 = 1_000;

pub(super) const TEMPORARY_DIR: &str = "tmp";
pub(super) const DROP_BOX: &str = "drop";
pub(super) const QUARANTINE: &str = "set-aside";

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

/// The root directory has these names.
const RESERVED_NAMES: [&str; 9] = [
    "README",
    "layout.json",
    "pace.json",
    "index.db",
    "lock",
    "lock-gate",
    "lock-gate2",
    "done",
    TEMPORARY_DIR,
];
/// File systems limit names to 255 bytes; endings need the rest.
const MAX_NAME_BYTES: usize = 240;
/// Usual length of a path after the name of its queue.
const PATH_CAPACITY: usize = 64;
/// Makes the ids that shorten long names.
const LONG_NAME_NAMESPACE: Uuid = Uuid::from_u128(0x4c7f_0b6e_1d52_5e9a_8f31_77aa_20d9_6b14);

/// Characters special to file systems or shells become `%XX`.
pub(super) fn folder(queue: &QueueName) -> String {
    let name = queue.as_str();
    let is_reserved = RESERVED_NAMES.iter().any(|reserved| name.starts_with(reserved));
    let mut escaped = String::with_capacity(name.len());
    for (at, char) in name.char_indices() {
        let is_odd =
            char.is_control() || "/\\%:*?\"<>|".contains(char) || (at == 0 && (char == '.' || is_reserved));
        if is_odd {
            let mut bytes = [0; 4];
            for byte in char.encode_utf8(&mut bytes).bytes() {
                escaped.push_str(&format!("%{byte:02X}"));
            }
        } else {
            escaped.push(char);
        }
    }
    if escaped.len() <= MAX_NAME_BYTES {
        return escaped;
    }
    let fits = (0..=MAX_NAME_BYTES - 40).rev().find(|&at| escaped.is_char_boundary(at)).unwrap_or(0);
    format!("{}%-{}", &escaped[..fits], Uuid::new_v5(&LONG_NAME_NAMESPACE, name.as_bytes()))
}

/// `None` if the name was shortened: then `queue.json` has it.
pub(super) fn queue_of(folder: &str) -> Option<QueueName> {
    let name = interval_queue_store::decoded(folder, "the name").ok()?;
    QueueName::new(name.into_owned()).ok().filter(|queue| self::folder(queue) == folder)
}

/// Has up to [`SHARD_SIZE`] tasks.
pub(super) fn shard(folder: &str, state: State, shard: i64) -> String {
    format!("{folder}/{state}/{shard:06}")
}

/// `None` for a purged task.
pub(super) fn path(folder: &str, state: State, number: i64, id: TaskId) -> Option<String> {
    if state == State::Purged {
        return None;
    }
    let mut path = String::with_capacity(folder.len() + PATH_CAPACITY);
    let _ = write!(path, "{folder}/{state}/{:06}/{id}.json", number / SHARD_SIZE);
    Some(path)
}

/// Nanoseconds of the modification time of an unedited file: a multiple of 100, the resolution of
/// most file systems.
pub(super) fn mark(id: TaskId) -> u32 {
    let number = id.uuid().as_u128();
    let mixed = (number as u64 ^ (number >> 64) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((mixed >> 32) % 10_000_000) as u32 * 100
}

pub(super) fn mark_of_path(path: &str) -> Option<u32> {
    let stem = path.rsplit('/').next()?.strip_suffix(".json")?;
    stem.parse().ok().map(mark)
}
