//! A grant in hand: from when on it may be used, and how late.

use std::time::{Duration, Instant};

use interval_queue_contract::{Micros, Ticket};

/// A ticket that may start at its slot.
#[derive(Clone, Copy, Debug, Hash)]
pub struct Granted {
    /// The ticket.
    pub ticket: Ticket,
    /// When it may start, as far as is known.
    pub slot: Instant,
    /// The same on the state's clock.
    pub told: Micros,
    /// When the shard knew of it.
    pub heard: Instant,
    /// The weight that was asked for.
    pub weight: u32,
}

/// A grant that is used so much too late is given up: the least of it.
pub const MIN_TOLERANCE: Duration = Duration::from_millis(10);

/// How late the grants in hand may be used. The same for all of them: a stop makes many late at once.
#[derive(Clone, Copy, Debug, Default, Hash)]
pub struct Tolerance {
    /// After its slot, or after it was heard of if that was later: then the host stood still. An interval, so
    /// that a stall is made up for by one start and no more.
    start: Duration,
    /// How long after its slot a grant may be heard of: the lead, which follows the network.
    reply: Duration,
    /// Whether a late start is told, so that the next slot moves on.
    pub(crate) is_told: bool,
}

impl Tolerance {
    /// After grants of so many steps in a row had to be given up: doubled each time, so that an overloaded
    /// host gets on.
    pub(crate) fn after(
        overruns: u32,
        interval: Duration,
        lead: Duration,
        tellable: Option<Duration>,
    ) -> Self {
        let doubled = |least: Duration| least.saturating_mul(1 << overruns.min(16));
        let [start, reply] = [interval, lead.max(interval)].map(|least| least.max(MIN_TOLERANCE));
        let start = tellable.map_or(start, |tellable| start.min(tellable));
        Self { start: doubled(start), reply: doubled(reply), is_told: tellable.is_some() }
    }

    pub(crate) fn is_exceeded(&self, grant: &Granted, now: Instant) -> bool {
        let usable_at = grant.slot.max(grant.heard);
        now.saturating_duration_since(usable_at) > self.start
            || usable_at.saturating_duration_since(grant.slot) > self.reply
    }
}
