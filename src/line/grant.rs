//! A grant in hand: from when on it may be used, and how late.

use std::time::Duration;

use interval_queue_contract::Ticket;
use tokio::time::Instant;

use super::{Jobs, Line};

/// A ticket that may start at its slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Granted {
    pub(crate) ticket: Ticket,
    pub(crate) slot: Instant,
    /// When the shard knew of it.
    pub(crate) heard: Instant,
    pub(crate) weight: u32,
}

/// About how precise timers are.
const GRAIN: Duration = Duration::from_micros(100);

/// A grant that is used so much too late is given up: the least of it.
pub(crate) const MIN_TOLERANCE: Duration = Duration::from_millis(10);

/// How late the grants in hand may be used.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tolerance {
    /// After its slot, or after it was heard of if that was later: then the host stood still. An interval, so
    /// that a stall is made up for by one start and no more.
    start: Duration,
    /// How long after its slot a grant may be heard of: the lead, which follows the network.
    reply: Duration,
}

impl Tolerance {
    /// After grants of so many steps in a row had to be given up: doubled each time, so that an overloaded
    /// host gets on.
    pub(crate) fn after(overruns: u32, interval: Duration, lead: Duration) -> Self {
        let [start, reply] = [interval, lead.max(interval)]
            .map(|least| least.max(MIN_TOLERANCE).saturating_mul(1 << overruns.min(16)));
        Self { start, reply }
    }

    pub(super) fn is_exceeded(&self, grant: &Granted, now: Instant) -> bool {
        let usable_at = grant.slot.max(grant.heard);
        now.saturating_duration_since(usable_at) > self.start
            || usable_at.saturating_duration_since(grant.slot) > self.reply
    }
}

impl<J: Jobs> Line<J> {
    /// From when on a grant may be used: from its slot on, but once that is past an interval after the start
    /// before. Else a stall or a slow reply, which makes several late at once, would end in a burst.
    fn usable_at(&self, grant: &Granted, now: Instant) -> Instant {
        let interval = self.memory.interval.to_duration();
        let is_late = now.saturating_duration_since(grant.slot) > interval.max(MIN_TOLERANCE) / 2;
        match self.started_at {
            Some(started_at) if is_late && interval > GRAIN => grant.slot.max(started_at + interval),
            _ => grant.slot,
        }
    }

    /// When to look for the next grant: not for each of those that are nearer to each other than timers can
    /// tell.
    pub(super) fn next_grant(&self, now: Instant) -> Option<Instant> {
        let usable_at = self.usable_at(self.grants.front()?, now);
        Some(self.started_at.map_or(usable_at, |started_at| usable_at.max(started_at + GRAIN)))
    }

    /// The next grant, if it may be used.
    pub(super) fn usable_grant(&self, now: Instant) -> Option<Granted> {
        self.grants.front().copied().filter(|grant| self.usable_at(grant, now) <= now)
    }
}
