//! What is promised, and what was seen.

/// A promise; a state has broken none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Promise {
    /// T2: what a worker takes for its own, while its lease lasts by its own clock, is its own by the store.
    Belief,
    /// T2: a token begins one run.
    Once,
    /// T2: a write with a token that is not in force changes nothing, and its sender is told.
    Fence,
    /// T2: a live lease ends by the word of its holder alone.
    Lease,
    /// T2: the attempts of a task rise with every lease, and what is known of a worker never goes back.
    Forward,
    /// T3: a run that has begun counts, and so does one whose worker died unless it was prefetched; nothing else does.
    Failures,
    /// T4: what is leased is the most urgent of what is ready.
    Order,
    /// T6: never more live leases than may be.
    Limit,
    /// T6: no place is free while somebody waits for it.
    HandOver,
    /// T7: a task starts only when its upstreams have ended as its edges ask.
    Edges,
    /// T7: an end is told once, and at once.
    Told,
    /// One task has a unique name at most.
    Unique,
    /// T9: a task that was cancelled while it ran ends as cancelled, however its run ends.
    Stopped,
    /// T10: counts equal what is stored.
    Counts,
    /// No honest command is refused.
    Soundness,
    /// T3: without further trouble every task ends, or visibly waits for an operator.
    Liveness,
}

impl Promise {
    /// The promise in a sentence.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Belief => "what a worker takes for its own is its own by the store",
            Self::Once => "no token begins two runs",
            Self::Fence => "a token that is not in force changes nothing, and its sender is told",
            Self::Lease => "a live lease ends by the word of its holder alone",
            Self::Forward => "attempts rise, and what is known of a worker never goes back",
            Self::Failures => "runs that began or whose worker died count unless prefetched, and no others",
            Self::Order => "what is leased is the most urgent of what is ready",
            Self::Limit => "no more live leases than may be",
            Self::HandOver => "no place is free while somebody waits for it",
            Self::Edges => "a task starts only when its upstreams have ended as its edges ask",
            Self::Told => "an end is told once, and at once",
            Self::Unique => "one task has a unique name at most",
            Self::Stopped => "a task that was cancelled while it ran ends as cancelled",
            Self::Counts => "counts equal what is stored",
            Self::Soundness => "no honest command is refused",
            Self::Liveness => "every task ends, or visibly waits for an operator",
        }
    }
}

/// What happened on the way from one state to the next; it is no part of a state. A setup in which something never
/// happens says nothing about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Sight {
    /// A run began.
    Start,
    /// A task was done.
    Done,
    /// A task failed.
    Failed,
    /// A task was cancelled.
    Cancelled,
    /// A task was taken from a dead worker.
    Died,
    /// A prefetched task was taken from a dead worker.
    DiedInHand,
    /// A lease never reached its worker, and was given back.
    LostOnTheWay,
    /// A worker was told to say all that it holds.
    Restate,
    /// A worker was told that a token is not in force.
    Lost,
    /// A worker was asked to stop a run.
    Stop,
    /// The lease of a worker ended by its own clock while it ran something.
    LeaseEnded,
    /// A step was refused because a newer one was obeyed.
    Superseded,
    /// A request that nobody waits for any more was carried out.
    Stray,
    /// A task got a place of its key when another one left it.
    HandOver,
    /// A task gave its place to a more urgent one.
    Displaced,
    /// As many ran as may.
    Full,
    /// A task waited for the upstream that failed.
    Held,
    /// A task was put in the place of another one.
    Replaced,
    /// A task that was added was not needed.
    Kept,
    /// A task that had ended went through its gates again.
    Retried,
    /// A run ended within a transaction of the application.
    Within,
    /// Such a transaction was refused, since the token was not in force.
    Refused,
}
