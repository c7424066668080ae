//! Leases: whom the record believes to be alive, and what becomes of what the dead held.

use crate::{Micros, Record, ShardId};

/// Forgets the shards whose lease has ended, but for `me`, who just spoke.
///
/// Tickets of the dead belong to nobody: until they are passed, distance says little about time.
pub(super) fn expire(record: &mut Record, me: &ShardId, now: Micros) {
    let mut holes = false;
    record.shards.retain(|id, presence| {
        let alive = id == me || presence.expires_at > now;
        holes |= !alive && presence.head.is_some();
        alive
    });
    if holes {
        record.gaps_until = record.ticket;
    }
}

/// Whether as many jobs run as may, if it is `running`.
pub(super) fn is_full(record: &Record, running: u64) -> bool {
    record.max_running.is_some_and(|limit| running >= u64::from(limit))
}

/// How many jobs of all shards run.
pub(super) fn running(record: &Record) -> u64 {
    record.shards.values().map(|presence| u64::from(presence.running)).sum()
}

/// Slots went by while nothing could start and nobody missed them: distances count from now.
pub(super) fn count_slots_from(record: &mut Record, now: Micros) {
    if record.free_at < now {
        record.free_at = now;
        record.break_line(record.current.after(1));
    }
}

/// How many jobs of the other shards run.
pub(super) fn running_elsewhere(record: &Record, me: &ShardId) -> u64 {
    record.shards.iter().filter(|(id, _)| *id != me).map(|(_, presence)| u64::from(presence.running)).sum()
}
