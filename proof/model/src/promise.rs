//! What is promised, in the words of the design.

/// A promise; a state has broken none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Promise {
    /// G1: no span of time has more slots than the rates allow: without bursts, no two are closer than the interval
    /// times the weight of the first.
    Spacing,
    /// G5: a job starts only on a grant of the state, for its ticket and its slot.
    Granted,
    /// G5: a ticket is started once.
    Once,
    /// G8: a paused or held queue grants nothing.
    Obedience,
    /// No more jobs run at once than may, those of the dead whose lease goes on included.
    Limit,
    /// G9: neither `ticket` nor `current` goes back, nor what the record knows of a shard.
    Forward,
    /// G9: a lost record brings no start early; one that was rewound in secret at most a burst, and as many as
    /// the lead spans.
    Recovery,
    /// The record stays one, and no step of an honest shard is refused but one that was overtaken.
    Soundness,
    /// G3, G4, G10: every job of a living shard starts within a bound once there is no more trouble.
    Liveness,
}

impl Promise {
    /// The promise in a sentence.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Spacing => "no span of time has more slots than the rates allow",
            Self::Granted => "no job starts without a grant for its ticket and slot",
            Self::Once => "no ticket is started twice",
            Self::Obedience => "a paused or held queue grants nothing",
            Self::Limit => "no more jobs run at once than may",
            Self::Forward => "ticket, current and what is known of a shard never go back",
            Self::Recovery => {
                "a lost record brings no start early, one rewound in secret no more than were granted ahead"
            }
            Self::Soundness => "the record stays sound, and no honest step is refused",
            Self::Liveness => "every job of a living shard starts in the end",
        }
    }
}
