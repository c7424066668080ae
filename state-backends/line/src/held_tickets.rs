//! Tickets and grants of a shard. They belong to the shard, not to a job.

use std::{
    collections::{BTreeSet, VecDeque},
    time::{Duration, Instant},
};

use interval_queue_contract::{LateStart, Micros, Ticket};

use crate::{
    grant::{Granted, MIN_TOLERANCE, Tolerance},
    lost::{LostBecause, LostSlot},
};

/// Approximate precision of timers.
const TIMER_PRECISION: Duration = Duration::from_micros(100);

/// Held tickets and grants.
#[derive(Clone, Debug, Default, Hash)]
pub struct HeldTickets {
    /// Tickets without a slot.
    pub tickets: BTreeSet<Ticket>,
    /// Tickets with a slot, in the order of slots.
    pub grants: VecDeque<Granted>,
    /// Tickets to take again for those given up as late.
    pub retake: u32,
    /// Highest ticket dropped and not reported.
    pub given_up: Option<Ticket>,
    /// Time of the last start.
    pub started_at: Option<Instant>,
    /// Whether a grant was given up as too late since the last step was made.
    pub overran: bool,
    /// Number of steps in a row with a grant given up as too late.
    pub overruns: u32,
    /// How late a start may be.
    pub tolerance: Tolerance,
    /// A late start to report.
    pub late_start: Option<LateStart>,
    /// Slots without a start, for observers.
    pub lost: Vec<LostSlot>,
}

impl HeldTickets {
    pub(crate) fn len(&self) -> usize {
        self.grants.len() + self.tickets.len()
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = Ticket> {
        self.grants.iter().map(|grant| grant.ticket).chain(self.tickets.iter().copied())
    }

    /// Fast for the last one, where new jobs are.
    pub(crate) fn at(&self, place: usize) -> Option<Ticket> {
        match self.tickets.last() {
            Some(last) if place + 1 == self.len() => Some(*last),
            _ if place >= self.len() => None,
            _ => self.all().nth(place),
        }
    }

    /// Normally of the lowest ticket. False: the ticket is gone.
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

    pub(crate) fn lose(&mut self, ticket: Ticket, because: LostBecause) {
        self.lost.push(LostSlot { ticket, because });
    }

    /// Tickets up to `current` missed their slots.
    pub(crate) fn requeue(&mut self, current: Ticket) {
        let before = self.tickets.len();
        self.tickets.retain(|ticket| *ticket > current);
        let missed = before - self.tickets.len();
        self.retake = self.retake.saturating_add(u32::try_from(missed).unwrap_or(u32::MAX));
    }

    /// Returns whether a grant was dropped.
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

    /// Once its slot has passed, a grant waits for the least time between two slots since the last
    /// start: otherwise a stall or a slow reply would end in a burst.
    fn usable_at(&self, grant: &Granted, spacing: Micros, now: Instant) -> Instant {
        let spacing = spacing.to_duration();
        let is_late = now.saturating_duration_since(grant.slot) > spacing.max(MIN_TOLERANCE) / 2;
        match self.started_at {
            Some(started_at) if is_late && spacing > TIMER_PRECISION => grant.slot.max(started_at + spacing),
            _ => grant.slot,
        }
    }

    /// Grants closer together than timers can resolve share a check.
    pub(crate) fn next_grant(&self, spacing: Micros, now: Instant) -> Option<Instant> {
        let usable_at = self.usable_at(self.grants.front()?, spacing, now);
        Some(self.started_at.map_or(usable_at, |started_at| usable_at.max(started_at + TIMER_PRECISION)))
    }

    /// The next grant, if usable.
    pub fn usable_grant(&self, spacing: Micros, now: Instant) -> Option<Granted> {
        self.grants.front().copied().filter(|grant| self.usable_at(grant, spacing, now) <= now)
    }
}
