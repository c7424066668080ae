//! The tickets that a shard holds, and the slots that it was granted. They belong to the shard, not to a job.

use std::{
    collections::{BTreeSet, VecDeque},
    time::{Duration, Instant},
};

use interval_queue_contract::{LateStart, Micros, Ticket};

use crate::{
    grant::{Granted, MIN_TOLERANCE, Tolerance},
    lost::{LostBecause, LostSlot},
};

/// About how precise timers are.
const GRAIN: Duration = Duration::from_micros(100);

/// What a shard has in hand.
#[derive(Clone, Debug, Default, Hash)]
pub struct Hand {
    /// Tickets without a slot.
    pub tickets: BTreeSet<Ticket>,
    /// Tickets with one, in the order of slots.
    pub grants: VecDeque<Granted>,
    /// Tickets to take again, because theirs were given up as late.
    pub retake: u32,
    /// The highest ticket dropped since the state was last told.
    pub given_up: Option<Ticket>,
    /// When a job last started.
    pub started_at: Option<Instant>,
    /// Whether a grant was given up as too late since the last step was made.
    pub overran: bool,
    /// How many steps in a row brought grants that were given up so.
    pub overruns: u32,
    /// How late a start may be.
    pub tolerance: Tolerance,
    /// A start that came late and is to be told.
    pub late_start: Option<LateStart>,
    /// Slots in which nothing started, for those who look at the line.
    pub lost: Vec<LostSlot>,
}

impl Hand {
    /// How many tickets, with a slot or without.
    pub(crate) fn len(&self) -> usize {
        self.grants.len() + self.tickets.len()
    }

    /// All tickets, rising.
    pub(crate) fn all(&self) -> impl Iterator<Item = Ticket> {
        self.grants.iter().map(|grant| grant.ticket).chain(self.tickets.iter().copied())
    }

    /// The ticket at this place among them. That of the last one, where new jobs are, is found at once.
    pub(crate) fn at(&self, place: usize) -> Option<Ticket> {
        match self.tickets.last() {
            Some(last) if place + 1 == self.len() => Some(*last),
            _ if place >= self.len() => None,
            _ => self.all().nth(place),
        }
    }

    /// Takes in a grant of a ticket that is here, as a rule the lowest. False if it is not here any more.
    pub(crate) fn receive(&mut self, grant: Granted) -> bool {
        let is_first = self.tickets.first() == Some(&grant.ticket);
        let is_here =
            if is_first { self.tickets.pop_first().is_some() } else { self.tickets.remove(&grant.ticket) };
        if is_here {
            self.grants.push_back(grant);
        } else {
            self.lose(grant.ticket, LostBecause::Unwanted);
        }
        is_here
    }

    /// Nothing starts in the slot of this ticket.
    pub(crate) fn lose(&mut self, ticket: Ticket, because: LostBecause) {
        self.lost.push(LostSlot { ticket, because });
    }

    /// Gives up the tickets up to `current`, which missed their slots, for fresh ones.
    pub(crate) fn requeue(&mut self, current: Ticket) {
        let before = self.tickets.len();
        self.tickets.retain(|ticket| *ticket > current);
        let missed = before - self.tickets.len();
        self.retake = self.retake.saturating_add(u32::try_from(missed).unwrap_or(u32::MAX));
    }

    /// Drops the highest tickets until there are no more than jobs. Whether a slot was among them.
    pub(crate) fn trim(&mut self, jobs: usize) -> bool {
        let mut lost = false;
        while self.len() > jobs {
            if let Some(dropped) = self.tickets.pop_last() {
                self.given_up = self.given_up.max(Some(dropped));
            } else {
                lost = true;
                let unused = self.grants.pop_back();
                unused.inspect(|grant| self.lose(grant.ticket, LostBecause::Unwanted));
            }
        }
        lost
    }

    /// From when on a grant may be used: from its slot on, but once that is past not before the least time
    /// between two slots has gone by since the start before. Else a stall or a slow reply, which makes several
    /// late at once, would end in a burst.
    fn usable_at(&self, grant: &Granted, spacing: Micros, now: Instant) -> Instant {
        let spacing = spacing.to_duration();
        let is_late = now.saturating_duration_since(grant.slot) > spacing.max(MIN_TOLERANCE) / 2;
        match self.started_at {
            Some(started_at) if is_late && spacing > GRAIN => grant.slot.max(started_at + spacing),
            _ => grant.slot,
        }
    }

    /// When to look for the next grant: not for each of those that are nearer to each other than timers can
    /// tell.
    pub(crate) fn next_grant(&self, spacing: Micros, now: Instant) -> Option<Instant> {
        let usable_at = self.usable_at(self.grants.front()?, spacing, now);
        Some(self.started_at.map_or(usable_at, |started_at| usable_at.max(started_at + GRAIN)))
    }

    /// The next grant, if it may be used.
    pub fn usable_grant(&self, spacing: Micros, now: Instant) -> Option<Granted> {
        self.grants.front().copied().filter(|grant| self.usable_at(grant, spacing, now) <= now)
    }
}
