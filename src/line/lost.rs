//! Slots that were granted and in which nothing starts, as the line notes them for those who look at it.

use interval_queue_contract::Ticket;

/// Why nothing started in a slot that was granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LostBecause {
    LateStart,
    Unwanted,
    TooLight,
}

impl LostBecause {
    /// In the order of the enum.
    #[cfg(feature = "metrics")]
    pub(crate) const ALL: [Self; 3] = [Self::LateStart, Self::Unwanted, Self::TooLight];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::LateStart => "late_start",
            Self::Unwanted => "unwanted",
            Self::TooLight => "too_light",
        }
    }
}

/// A slot that was granted and in which nothing starts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LostSlot {
    pub(crate) ticket: Ticket,
    pub(crate) because: LostBecause,
}
