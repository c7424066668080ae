//! When a job would start, as far as a shard can tell.
//!
//! All of it is `slot_behind` so many slots. How many they are is the question: for a
//! ticket it is `slots_before`.

use std::time::Instant;

use interval_queue_contract::{Memory, Ticket};

use crate::{
    jobs::{JobId, Terms},
    line::Line,
    order::Rank,
};

impl<J, C, A> Line<J, C, A> {
    /// The ticket that a waiting job will run with as things stand.
    pub fn ticket_of(&self, id: JobId) -> Option<Ticket> {
        self.hand.at(self.place_of(id)?)
    }

    /// How many jobs of this shard start before a waiting one.
    fn place_of(&self, id: JobId) -> Option<usize> {
        let waiting = &self.backlog.waiting;
        // New jobs are the last ones, as a rule.
        let place =
            || if waiting.is_last(id) { waiting.len() - 1 } else { waiting.before(waiting.rank(id)).count() };
        waiting.contains(id).then(place)
    }

    /// When the last of so many new jobs would start if every ticket before it is used; none if nobody can
    /// tell. What is known of the record is `seen`.
    pub fn quote(&self, seen: &Memory, terms: &Terms, count: usize, now: Instant) -> Option<Instant> {
        if seen.paused {
            return None;
        }
        let alone = self.alone_behind(|| {
            let waiting = self.backlog.waiting.before(Rank::last_of(terms.priority));
            let before = waiting.chain(self.backlog.arriving_before(terms.priority));
            before.map(|job| u64::from(job.weight)).sum::<u64>() + weight_behind(terms, count)
        });
        alone.or_else(|| self.new_behind(seen, 0, terms, count, now))
    }

    /// When a new joint job would start in the same way.
    pub fn joint_quote(&self, seen: &Memory, terms: &Terms, now: Instant) -> Option<Instant> {
        let seen = Some(seen).filter(|seen| !seen.paused)?;
        let gated = self.backlog.gated.before_new(terms.priority);
        self.new_behind(seen, gated, terms, 1 + self.backlog.announced, now)
    }

    /// When the last of so many new jobs gets its slot, behind so many that are gated.
    fn new_behind(
        &self,
        seen: &Memory,
        gated: usize,
        terms: &Terms,
        count: usize,
        now: Instant,
    ) -> Option<Instant> {
        let waiting = &self.backlog.waiting;
        let arriving = self.backlog.arriving_before(terms.priority).count();
        let before = waiting.before_new(terms.priority) + gated + arriving;
        let beyond = || seen.ticket.after(1 + (before - self.hand.len()) as u64);
        let ticket = self.hand.at(before).unwrap_or_else(beyond);
        let heavy = waiting.overweight_before(Rank::last_of(terms.priority)) + weight_behind(terms, count);
        let quote = self.slot_behind(seen, self.slots_before(seen, before, ticket) + heavy, now);
        self.contact.failing.is_none().then_some(quote)
    }

    /// When a waiting job starts if every ticket before it is used. What the jobs of other shards weigh,
    /// nobody here knows.
    pub fn expected_start(&self, id: JobId, now: Instant) -> Option<Instant> {
        let place = self.place_of(id)?;
        let seen = Some(&self.contact.memory).filter(|seen| !seen.paused)?;
        let waiting = &self.backlog.waiting;
        let rank = waiting.rank(id);
        let alone = self.alone_behind(|| waiting.before(rank).map(|job| u64::from(job.weight)).sum());
        if let Some(known) = alone.or_else(|| self.hand.grants.get(place).map(|granted| granted.slot)) {
            return Some(known);
        }
        let slots = self.slots_before(seen, place, self.hand.at(place)?) + waiting.overweight_before(rank);
        Some(self.slot_behind(seen, slots, now))
    }

    /// When a joint job that has its ticket could start, if every ticket before it is used; none if nobody
    /// can tell.
    pub fn outlook(&self, id: JobId, priority: i32, now: Instant) -> Option<Instant> {
        let seen = &self.contact.memory;
        if seen.paused || self.contact.failing.is_some() {
            return None;
        }
        let rank = Rank::new(priority, id);
        let open = self.backlog.waiting.before(rank).count();
        let before = open + self.backlog.gated.before(rank).count();
        let place = before.min(self.hand.len().checked_sub(1)?);
        if let Some(granted) = self.hand.grants.get(place) {
            return Some(granted.slot);
        }
        let ticket = self.hand.at(place)?;
        // Late tickets are served one after the other.
        let slots = (open as u64).max(seen.ahead_of(ticket)) + self.backlog.waiting.overweight_before(rank);
        Some(self.slot_behind(seen, slots, now))
    }

    /// How many slots come before that of a ticket, with so many jobs of this shard before it.
    fn slots_before(&self, seen: &Memory, before: usize, ticket: Ticket) -> u64 {
        if seen.shards > u32::from(self.contact.present) {
            return seen.ahead_of(ticket);
        }
        // Tickets of others belong to nobody any more.
        before.saturating_sub(self.hand.grants.len()) as u64
    }

    /// When the slot comes with so many before it; `fallback` if nothing is known of the state's clock.
    pub(crate) fn slot_behind(&self, seen: &Memory, slots: u64, fallback: Instant) -> Instant {
        let first = seen.at + seen.slot_in(Ticket::NONE);
        self.clock.ours_for(first + seen.interval * slots, fallback)
    }
}

/// What the others of so many new jobs weigh, before the last of them.
fn weight_behind(terms: &Terms, count: usize) -> u64 {
    count.saturating_sub(1) as u64 * u64::from(terms.weight)
}
