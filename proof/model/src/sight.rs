//! What happened on the way from one state to the next. It is no part of a state.

/// Something worth seeing: a setup in which it never happens says nothing about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Sight {
    /// A job started.
    Start,
    /// A ticket that was overtaken got the slot it owned.
    OwnSlot,
    /// A ticket that was overtaken did not get the slot it owned, since a quota was used up.
    OwnSlotDenied,
    /// A ticket that had missed its slot got another one.
    LateSlot,
    /// A grant was given up as too late.
    GivenUp,
    /// A step was refused because a later one had come before it.
    Superseded,
    /// A request that nobody waited for any more was carried out.
    Stray,
    /// The record took a shard for dead.
    LeaseEnded,
    /// The record noticed that it had forgotten something.
    Lifted,
    /// A slot was granted that was one too many, with those granted before a loss.
    Early,
    /// A slot was granted again whose grant was lost.
    Again,
    /// As many jobs ran as may.
    Full,
}
