//! A grant in hand: when it may be used, and how late.

use std::time::{Duration, Instant};

use interval_queue_contract::{Micros, Ticket};

/// A ticket that may start at its slot.
#[derive(Clone, Copy, Debug, Hash)]
pub struct Granted {
    /// The ticket.
    pub ticket: Ticket,
    /// Its slot, as far as known.
    pub slot: Instant,
    /// Its slot on the store's clock.
    pub store_slot: Micros,
    /// When the shard received it.
    pub received: Instant,
    /// The weight requested.
    pub weight: u32,
}

/// Least lateness at which a grant is given up.
pub const MIN_TOLERANCE: Duration = Duration::from_millis(10);

/// How late grants may be used. Equal for all: one stall makes many late at once.
#[derive(Clone, Copy, Debug, Default, Hash)]
pub struct Tolerance {
    /// Lateness after slot or receipt: more is a stall of the host. An interval, so that at most
    /// one start makes up for a stall.
    start: Duration,
    /// From slot to receipt: the lead, which follows the network.
    reply: Duration,
    /// A report moves the next slot.
    pub(crate) reports_lateness: bool,
}

impl Tolerance {
    /// Doubles with each step in a row whose grants were given up: an overloaded host makes
    /// progress.
    pub(crate) fn after(
        overruns: u32,
        interval: Duration,
        lead: Duration,
        reportable: Option<Duration>,
    ) -> Self {
        let doubled = |least: Duration| least.saturating_mul(1 << overruns.min(16));
        let [start, reply] = [interval, lead.max(interval)].map(|least| least.max(MIN_TOLERANCE));
        let start = reportable.map_or(start, |reportable| start.min(reportable));
        Self { start: doubled(start), reply: doubled(reply), reports_lateness: reportable.is_some() }
    }

    pub(crate) fn is_exceeded(&self, grant: &Granted, now: Instant) -> bool {
        let usable_at = grant.slot.max(grant.received);
        now.saturating_duration_since(usable_at) > self.start
            || usable_at.saturating_duration_since(grant.slot) > self.reply
    }
}
