//! Slots that were granted and in which nothing starts, as the line notes them for those who look at it.

use interval_queue_contract::Ticket;

/// Why nothing started in a slot that was granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LostBecause {
    /// It would have been too late.
    LateStart,
    /// No job was left for it.
    Unwanted,
    /// The first job is heavier than what the slot was asked for.
    TooLight,
}

impl LostBecause {
    /// As they are told, in the order of the enum.
    pub const NAMES: [&str; 3] = ["late_start", "unwanted", "too_light"];

    /// As it is told.
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}

/// A slot that was granted and in which nothing starts.
#[derive(Clone, Copy, Debug, Hash)]
pub struct LostSlot {
    /// The ticket it was granted to.
    pub ticket: Ticket,
    /// Why nothing starts.
    pub because: LostBecause,
}
