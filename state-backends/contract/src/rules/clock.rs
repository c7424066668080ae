//! Time in the record never goes back.

use crate::{Micros, Record, limits::CLOCK_TOLERANCE};

/// Returns the instant to compute with.
///
/// Hosts that share a file differ a little: a `now` shortly before the latest time counts as the
/// latest. If `now` is further back, the clock was stepped, and all reservations move with it: late
/// by the unknown time since the last write, so an overtaken ticket whose neighbours have their
/// grants has lost its slot.
pub(super) fn arrive(record: &mut Record, now: Micros) -> Micros {
    let back = record.seen_at - now;
    if back > CLOCK_TOLERANCE {
        for instant in
            [&mut record.last_slot, &mut record.held_until, &mut record.lifted_at, &mut record.seen_at]
        {
            *instant = *instant - back;
        }
        record.meters.move_back(back);
        for presence in record.shards.values_mut() {
            presence.expires_at = presence.expires_at - back;
            presence.granted.clear();
        }
        record.break_line(record.current.after(1));
    }
    record.seen_at = record.seen_at.max(now);
    record.seen_at
}
