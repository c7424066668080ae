//! Conditional deletion of a queue.

use super::{Reading, clock};
use crate::{Changed, Deletion, Memory, Micros, Record, StateError, StateErrorKind};

const MAX_NAMED_SHARDS: usize = 5;

/// The returned memory holds only the instant.
pub(super) fn apply(
    stored: &mut Option<Record>,
    reading: &Reading,
    deletion: Deletion,
) -> Result<Changed, StateError> {
    let mut record = stored.clone().ok_or_else(|| {
        StateError::new(StateErrorKind::NotFound, "there is no such queue: nothing is deleted")
    })?;
    let written_at = record.seen_at;
    let now = clock::arrive(&mut record, reading.now);
    let refusal = match deletion {
        Deletion::Forced => None,
        Deletion::Unused => in_use(&record, now),
        Deletion::Idle(wanted) => in_use(&record, now).or_else(|| not_idle(&record, now, written_at, wanted)),
    };
    if let Some(refusal) = refusal {
        return Err(StateError::new(StateErrorKind::Conflict, refusal));
    }
    *stored = None;
    let memory = Memory { at: now, ..Memory::default() };
    Ok(Changed { memory, before: Some(record.settings()) })
}

fn in_use(record: &Record, now: Micros) -> Option<String> {
    let alive = || record.shards.iter().filter(|(_, presence)| presence.expires_at > now);
    let count = alive().count();
    if count == 0 {
        return None;
    }
    let mut names: Vec<_> =
        alive().take(MAX_NAMED_SHARDS).map(|(id, presence)| format!("{} ({id})", presence.label)).collect();
    if count > MAX_NAMED_SHARDS {
        names.push(format!("{} more", count - MAX_NAMED_SHARDS));
    }
    let shards = if count == 1 { "a shard".to_owned() } else { format!("{count} shards") };
    Some(format!(
        "the queue is used by {shards}: {}; delete it when no shard has jobs, or force it",
        names.join(", ")
    ))
}

fn not_idle(record: &Record, now: Micros, written_at: Micros, wanted: Micros) -> Option<String> {
    // Used quota prevents deletion, too.
    let used_until = record.meters.iter().map(|meter| meter.tat).max();
    let reserved_until = used_until.unwrap_or_default().max(record.held_until);
    if record.paused {
        return Some("the queue is paused: somebody means to go on with it".to_owned());
    }
    if reserved_until > now {
        let ahead = (reserved_until - now).to_duration();
        return Some(format!(
            "the queue is held, or what was used of its rates counts, for another {ahead:?}"
        ));
    }
    let idle = now - written_at;
    (idle < wanted).then(|| {
        let (idle, wanted) = (idle.to_duration(), wanted.to_duration());
        format!("the queue was used {idle:?} ago: less than {wanted:?}")
    })
}
