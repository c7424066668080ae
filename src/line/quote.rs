//! When a job would start, as far as a shard can tell.

use interval_queue_contract::{Memory, Ticket};
use tokio::time::Instant;

use super::{
    JobId, Jobs, Line,
    waiting::{Terms, Waiting},
};

impl<J: Jobs> Line<J> {
    /// The ticket that a waiting job will run with as things stand.
    pub(crate) fn ticket_of(&self, id: JobId) -> Option<Ticket> {
        self.own_ticket(self.place_of(id)?)
    }

    /// How many jobs of this shard start before a waiting one.
    fn place_of(&self, id: JobId) -> Option<usize> {
        if !self.waiting.contains(id) {
            return None;
        }
        // New jobs are the last ones, as a rule.
        Some(if self.waiting.is_last(id) { self.waiting.len() - 1 } else { self.waiting.before(id).count() })
    }

    /// The tickets of this shard, rising.
    pub(crate) fn own_tickets(&self) -> impl Iterator<Item = Ticket> {
        self.grants.iter().map(|grant| grant.ticket).chain(self.tickets.iter().copied())
    }

    /// The ticket at this place among them. That of the last one, where new jobs are, is found at once.
    fn own_ticket(&self, place: usize) -> Option<Ticket> {
        let held = self.grants.len() + self.tickets.len();
        match self.tickets.last() {
            Some(last) if place + 1 == held => Some(*last),
            _ if place >= held => None,
            _ => self.own_tickets().nth(place),
        }
    }

    /// When the last of so many new jobs would start if every ticket before it is used; none if nobody can
    /// tell. What is known of the record is `seen`.
    pub(crate) fn quote(&self, seen: &Memory, terms: &Terms, count: usize, now: Instant) -> Option<Instant> {
        if seen.paused {
            return None;
        }
        let before = self.waiting.before_new(terms.priority);
        let arriving = || self.arriving_before(terms.priority);
        let weights = || {
            let waiting = before as u64 + self.waiting.overweight_before_place(terms.priority, JobId::MAX);
            waiting + arriving().map(|job| u64::from(job.weight)).sum::<u64>() + weight_behind(terms, count)
        };
        if let Some(alone) = self.alone_behind(weights) {
            return Some(alone);
        }
        let quote = self.quote_behind(seen, before + arriving().count(), terms, count, now);
        self.failing.is_none().then_some(quote)
    }

    /// The same for jobs behind so many others of this shard.
    pub(crate) fn quote_behind(
        &self,
        seen: &Memory,
        before: usize,
        terms: &Terms,
        count: usize,
        now: Instant,
    ) -> Instant {
        let ticket = self.own_ticket(before).unwrap_or_else(|| {
            let held = self.grants.len() + self.tickets.len();
            seen.ticket.after(1 + (before - held) as u64)
        });
        let behind = weight_behind(terms, count);
        let heavy = self.waiting.overweight_before_place(terms.priority, JobId::MAX);
        self.slot_behind(seen, self.slots_before(seen, before, ticket) + heavy + behind, now)
    }

    /// The jobs without a ticket that start before a new one of that priority.
    pub(crate) fn arriving_before(&self, priority: i32) -> impl Iterator<Item = &Waiting<J::Job>> {
        let taking = self.taking.iter().flat_map(|taking| &taking.batch);
        let jobs = taking.chain(&self.arriving).map(|arriving| &arriving.job);
        jobs.filter(move |job| job.priority() >= priority)
    }

    /// When a waiting job starts if every ticket before it is used. What the jobs of other shards weigh,
    /// nobody here knows.
    pub(crate) fn expected_start(&self, id: JobId, now: Instant) -> Option<Instant> {
        let place = self.place_of(id)?;
        if self.memory.paused {
            return None;
        }
        if let Some(start) = self.alone_start(id) {
            return Some(start);
        }
        if let Some(granted) = self.grants.get(place) {
            return Some(granted.slot);
        }
        let ticket = self.own_ticket(place)?;
        let slots = self.slots_before(&self.memory, place, ticket) + self.waiting.overweight_before(id);
        Some(self.slot_behind(&self.memory, slots, now))
    }

    /// How many slots come before that of a ticket, with so many jobs of this shard before it.
    fn slots_before(&self, seen: &Memory, before: usize, ticket: Ticket) -> u64 {
        if seen.shards > u32::from(self.present) {
            return seen.ahead_of(ticket);
        }
        // Tickets of others belong to nobody any more.
        before.saturating_sub(self.grants.len()) as u64
    }

    fn slot_behind(&self, seen: &Memory, slots: u64, now: Instant) -> Instant {
        let first = seen.at + seen.slot_in(Ticket::NONE);
        self.clock.ours_for(first + seen.interval * slots, now)
    }
}

/// What the others of so many new jobs weigh, before the last of them.
fn weight_behind(terms: &Terms, count: usize) -> u64 {
    count.saturating_sub(1) as u64 * u64::from(terms.weight)
}
