//! Granted slots without a start, for observers.

use interval_queue_contract::Ticket;

/// Why nothing started in a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LostBecause {
    /// The start would have been too late.
    LateStart,
    /// No job was left for it.
    Unwanted,
    /// The first job is heavier than requested.
    TooLight,
}

impl LostBecause {
    /// Names in reports, in the order of the enum.
    pub const NAMES: [&str; 3] = ["late_start", "unwanted", "too_light"];

    /// Name in reports.
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}

/// A granted slot without a start.
#[derive(Clone, Copy, Debug, Hash)]
pub struct LostSlot {
    /// Its ticket.
    pub ticket: Ticket,
    /// The reason.
    pub because: LostBecause,
}
