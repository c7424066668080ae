//! When a job would start, as far as a shard can tell.

use std::time::Instant;

use interval_queue_contract::{Memory, Ticket};

use crate::{
    jobs::{JobId, Terms},
    line::Line,
};

impl<J, C, A> Line<J, C, A> {
    /// The ticket that a waiting job will run with as things stand.
    pub fn ticket_of(&self, id: JobId) -> Option<Ticket> {
        self.hand.at(self.place_of(id)?)
    }

    /// How many jobs of this shard start before a waiting one.
    fn place_of(&self, id: JobId) -> Option<usize> {
        if !self.backlog.waiting.contains(id) {
            return None;
        }
        // New jobs are the last ones, as a rule.
        Some(if self.backlog.waiting.is_last(id) {
            self.backlog.waiting.len() - 1
        } else {
            self.backlog.waiting.before(id).count()
        })
    }

    /// When the last of so many new jobs would start if every ticket before it is used; none if nobody can
    /// tell. What is known of the record is `seen`.
    pub fn quote(&self, seen: &Memory, terms: &Terms, count: usize, now: Instant) -> Option<Instant> {
        if seen.paused {
            return None;
        }
        let before = self.backlog.waiting.before_new(terms.priority);
        let arriving = || self.backlog.arriving_before(terms.priority);
        let weights = || {
            let waiting =
                before as u64 + self.backlog.waiting.overweight_before_place(terms.priority, JobId::MAX);
            waiting + arriving().map(|job| u64::from(job.weight)).sum::<u64>() + weight_behind(terms, count)
        };
        if let Some(alone) = self.alone_behind(weights) {
            return Some(alone);
        }
        let quote = self.quote_behind(seen, before + arriving().count(), terms, count, now);
        self.contact.failing.is_none().then_some(quote)
    }

    /// The same for jobs behind so many others of this shard.
    pub fn quote_behind(
        &self,
        seen: &Memory,
        before: usize,
        terms: &Terms,
        count: usize,
        now: Instant,
    ) -> Instant {
        let ticket = self.hand.at(before).unwrap_or_else(|| {
            let held = self.hand.len();
            seen.ticket.after(1 + (before - held) as u64)
        });
        let behind = weight_behind(terms, count);
        let heavy = self.backlog.waiting.overweight_before_place(terms.priority, JobId::MAX);
        self.slot_behind(seen, self.slots_before(seen, before, ticket) + heavy + behind, now)
    }

    /// When a waiting job starts if every ticket before it is used. What the jobs of other shards weigh,
    /// nobody here knows.
    pub fn expected_start(&self, id: JobId, now: Instant) -> Option<Instant> {
        let place = self.place_of(id)?;
        if self.contact.memory.paused {
            return None;
        }
        if let Some(start) = self.alone_start(id) {
            return Some(start);
        }
        if let Some(granted) = self.hand.grants.get(place) {
            return Some(granted.slot);
        }
        let ticket = self.hand.at(place)?;
        let slots = self.slots_before(&self.contact.memory, place, ticket)
            + self.backlog.waiting.overweight_before(id);
        Some(self.slot_behind(&self.contact.memory, slots, now))
    }

    /// When a joint job that has its ticket could start, if every ticket before it is used; none if nobody
    /// can tell.
    pub fn outlook(&self, id: JobId, priority: i32, now: Instant) -> Option<Instant> {
        if self.contact.memory.paused || self.contact.failing.is_some() {
            return None;
        }
        let open = self.backlog.waiting.count_before(priority, id);
        let before = open + self.backlog.gated.jobs.count_before(priority, id);
        let ticket = self.hand.all().nth(before).or_else(|| self.hand.all().last())?;
        let granted = self.hand.grants.iter().find(|grant| grant.ticket == ticket).map(|grant| grant.slot);
        // Late tickets are served one after the other.
        let intervals = (open as u64).max(self.contact.memory.ahead_of(ticket));
        let intervals = intervals + self.backlog.waiting.overweight_before_place(priority, id);
        let first = self.contact.memory.at + self.contact.memory.slot_in(Ticket::NONE);
        Some(
            granted.unwrap_or_else(|| {
                self.clock.ours_for(first + self.contact.memory.interval * intervals, now)
            }),
        )
    }

    /// How many slots come before that of a ticket, with so many jobs of this shard before it.
    fn slots_before(&self, seen: &Memory, before: usize, ticket: Ticket) -> u64 {
        if seen.shards > u32::from(self.contact.present) {
            return seen.ahead_of(ticket);
        }
        // Tickets of others belong to nobody any more.
        before.saturating_sub(self.hand.grants.len()) as u64
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
