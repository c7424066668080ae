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

/// How many jobs of the other shards run.
pub(super) fn running_elsewhere(record: &Record, me: &ShardId) -> u64 {
    record
        .shards
        .iter()
        .filter(|(id, _)| *id != me)
        .map(|(_, presence)| u64::from(presence.running))
        .sum()
}
