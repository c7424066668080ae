//! Estimates of starts: `slots_before` counts the slots before a ticket, `slot_behind` gives the
//! slot after them.

use std::time::{Duration, Instant};

use interval_queue_contract::{Memory, Ticket};

use crate::{
    jobs::{JobId, Terms, Withdrawn},
    line::Line,
    order::Rank,
};

/// Maximum age of the memory of the record for an estimate.
pub const MAX_MEMORY_AGE: Duration = Duration::from_secs(1);

impl<J, C, A> Line<J, C, A> {
    /// The ticket that a waiting job will run with as things stand, even if not taken yet.
    pub fn ticket_of(&self, id: JobId) -> Option<Ticket> {
        let place = self.place_of(id).or_else(|| {
            let job = self.backlog.unticketed_job(id)?;
            Some(self.place_behind(Rank::of(id, job), job.priority()))
        });
        place.map(|place| self.ticket_at(&self.connection.memory, place))
    }

    /// Of this shard, for a job with a ticket.
    fn place_of(&self, id: JobId) -> Option<usize> {
        let waiting = &self.backlog.waiting;
        let place =
            || if waiting.is_last(id) { waiting.len() - 1 } else { waiting.before(waiting.rank(id)).count() };
        waiting.contains(id).then(place)
    }

    /// For a new job, or one without a ticket.
    fn place_behind(&self, rank: Rank, priority: i32) -> usize {
        self.backlog.waiting.before_new(priority) + self.backlog.arriving_before(rank).count()
    }

    /// Held, or still to be taken.
    fn ticket_at(&self, seen: &Memory, place: usize) -> Ticket {
        self.held.at(place).unwrap_or_else(|| seen.ticket.after(1 + (place - self.held.len()) as u64))
    }

    /// Start of a new job if every earlier ticket is used. `seen`: the record. `None`: unknown.
    pub fn estimate_start(&self, seen: &Memory, terms: &Terms, now: Instant) -> Option<Instant> {
        self.estimate_behind(seen, Rank::last_of(terms.priority), terms.priority, terms.weight, now)
    }

    /// The start of a job without a ticket.
    fn estimate_behind(
        &self,
        seen: &Memory,
        rank: Rank,
        priority: i32,
        weight: u32,
        now: Instant,
    ) -> Option<Instant> {
        if seen.paused {
            return None;
        }
        let alone = self.alone_behind(|| {
            let before = self.backlog.waiting.before(rank).chain(self.backlog.arriving_before(rank));
            before.map(|job| u64::from(job.weight)).sum()
        });
        let arriving = self.backlog.arriving_before(rank).map(|job| u64::from(job.weight.saturating_sub(1)));
        let place = self.place_behind(rank, priority);
        alone.or_else(|| self.new_behind(seen, rank, place, arriving.sum(), weight, now))
    }

    /// As [`estimate_start`](Self::estimate_start), of a joint job.
    pub fn estimate_joint_start(&self, seen: &Memory, terms: &Terms, now: Instant) -> Option<Instant> {
        let seen = Some(seen).filter(|seen| !seen.paused)?;
        let rank = Rank::last_of(terms.priority);
        let place = self.place_behind(rank, terms.priority) + self.backlog.gated.before_new(terms.priority);
        let announced = self.backlog.announced as u64 * u64::from(terms.weight);
        self.new_behind(seen, rank, place, announced, terms.weight, now)
    }

    /// For a job without a ticket, after `more` further slots.
    fn new_behind(
        &self,
        seen: &Memory,
        rank: Rank,
        place: usize,
        more: u64,
        weight: u32,
        now: Instant,
    ) -> Option<Instant> {
        let heavy = self.backlog.waiting.overweight_before(rank) + more;
        let slots = self.slots_before(seen, place, self.ticket_at(seen, place)) + heavy;
        let estimate = self.slot_behind(seen, slots, weight, now);
        self.connection.failing.is_none().then_some(estimate)
    }

    /// Removes the next job in need of an estimate that would start too late; returns the estimate.
    /// `None` while the record is unknown.
    pub fn next_refused(&mut self, now: Instant) -> Option<(Withdrawn<J, C>, Instant)> {
        self.backlog.unestimated.front()?;
        self.refuse_by(&self.recent_memory(now, MAX_MEMORY_AGE)?, now)
    }

    /// As [`next_refused`](Self::next_refused), by a read.
    pub fn refuse_by(&mut self, seen: &Memory, now: Instant) -> Option<(Withdrawn<J, C>, Instant)> {
        while let Some((id, deadline)) = self.backlog.unestimated.pop_front() {
            let estimate = match self.backlog.unticketed_job(id) {
                Some(job) => self.estimate_behind(seen, Rank::of(id, job), job.priority(), job.weight, now),
                None => self.expected_start(id, now),
            };
            if let Some(estimate) = estimate.filter(|estimate| *estimate > deadline) {
                return self.withdraw(id).map(|withdrawn| (withdrawn, estimate));
            }
        }
        None
    }

    /// Start of a waiting job if every earlier ticket is used. Weights of other shards' jobs are
    /// unknown.
    pub fn expected_start(&self, id: JobId, now: Instant) -> Option<Instant> {
        let seen = &self.connection.memory;
        if let Some(job) = self.backlog.unticketed_job(id) {
            return self.estimate_behind(seen, Rank::of(id, job), job.priority(), job.weight, now);
        }
        let place = self.place_of(id)?;
        let seen = Some(seen).filter(|seen| !seen.paused)?;
        let waiting = &self.backlog.waiting;
        let rank = waiting.rank(id);
        let alone = self.alone_behind(|| waiting.before(rank).map(|job| u64::from(job.weight)).sum());
        if let Some(known) = alone.or_else(|| self.held.grants.get(place).map(|granted| granted.slot)) {
            return Some(known);
        }
        let slots = self.slots_before(seen, place, self.held.at(place)?) + waiting.overweight_before(rank);
        Some(self.slot_behind(seen, slots, waiting.weight(id), now))
    }

    /// Start of a gated job if its gate opens now: by its ticket, or alone without one. `None`:
    /// unknown.
    pub fn gated_start(&self, id: JobId, priority: i32, has_ticket: bool, now: Instant) -> Option<Instant> {
        let alone = self.alone_behind(|| 0).map(|at| at.max(now));
        alone.or_else(|| has_ticket.then(|| self.earliest_start(id, priority, now)).flatten())
    }

    /// Earliest start of a gated job with a ticket if every earlier ticket is used. `None`:
    /// unknown.
    pub fn earliest_start(&self, id: JobId, priority: i32, now: Instant) -> Option<Instant> {
        let seen = &self.connection.memory;
        if seen.paused || self.connection.failing.is_some() {
            return None;
        }
        let rank = Rank::new(priority, id);
        let open = self.backlog.waiting.before(rank).count();
        let before = open + self.backlog.gated.before(rank).count();
        let place = before.min(self.held.len().checked_sub(1)?);
        if let Some(granted) = self.held.grants.get(place) {
            return Some(granted.slot);
        }
        // Late tickets are served one by one; granted jobs have their slots.
        let open = open.saturating_sub(self.held.grants.len()) as u64;
        let slots = open.max(seen.ahead_of(self.held.at(place)?));
        let slots = slots + self.backlog.waiting.overweight_before(rank);
        Some(self.slot_behind(seen, slots, self.backlog.gated.weight(id), now))
    }

    /// `before`: earlier jobs of this shard.
    fn slots_before(&self, seen: &Memory, before: usize, ticket: Ticket) -> u64 {
        if seen.shards > u32::from(self.connection.present) {
            return seen.ahead_of(ticket);
        }
        // No other shard is present, so other tickets have no owner.
        before.saturating_sub(self.held.grants.len()) as u64
    }

    /// `fallback` if the clock is unknown.
    pub(crate) fn slot_behind(&self, seen: &Memory, slots: u64, weight: u32, fallback: Instant) -> Instant {
        self.clock.ours_for(seen.slot_behind(slots, weight), fallback)
    }
}
