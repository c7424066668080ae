//! Granted slots in which nothing starts, recorded for observers of the line.

use interval_queue_contract::Ticket;

/// Why nothing started in a granted slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LostBecause {
    /// The start would have been too late.
    LateStart,
    /// No job was left for it.
    Unwanted,
    /// The first job is heavier than the weight requested.
    TooLight,
}

impl LostBecause {
    /// Names for reports, in the order of the enum.
    pub const NAMES: [&str; 3] = ["late_start", "unwanted", "too_light"];

    /// Name for reports.
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}

/// A granted slot in which nothing starts.
#[derive(Clone, Copy, Debug, Hash)]
pub struct LostSlot {
    /// Its ticket.
    pub ticket: Ticket,
    /// The reason.
    pub because: LostBecause,
}
