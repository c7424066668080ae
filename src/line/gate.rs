//! Jobs that hold a ticket and are not to start yet: they need a slot of other queues, too, and their gate is
//! closed until those are near.
//!
//! The state is asked for no slot for them, and a slot that comes all the same is used by another job of the
//! shard. So a ticket that is held for one can pass its slot, which costs the others that one slot; the state
//! then hears of it no more until the gate is open.

use std::{collections::HashSet, time::Duration};

use interval_queue_contract::Ticket;
use tokio::time::Instant;

use super::{
    JobId, Jobs, Line,
    waiting::{Rank, Ranked, Waiting},
};

/// How long after its slot a ticket that is held counts as late, so that not each of many is a command of its
/// own.
const PASSED: Duration = Duration::from_millis(100);

/// Whether a job may start when a slot comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gate {
    Open,
    Closed,
}

/// The jobs of a line behind a closed gate.
pub(crate) struct Gated<J> {
    /// Those with a ticket.
    jobs: Ranked<J>,
    /// Those that have none yet.
    arriving: HashSet<JobId>,
    /// How many are to come as soon as the slot comes that they ask another queue for.
    announced: usize,
}

impl<J> Default for Gated<J> {
    fn default() -> Self {
        Self { jobs: Ranked::default(), arriving: HashSet::new(), announced: 0 }
    }
}

impl<J> Gated<J> {
    /// How many have a ticket.
    pub(crate) fn len(&self) -> usize {
        self.jobs.len()
    }

    /// Whether this one has no ticket yet.
    pub(crate) fn holds(&self, id: JobId) -> bool {
        !self.arriving.is_empty() && self.arriving.contains(&id)
    }

    pub(crate) fn remove(&mut self, id: JobId) -> Option<Waiting<J>> {
        self.jobs.remove(id)
    }

    /// Forgets one that has no ticket yet.
    pub(crate) fn forget(&mut self, id: JobId) {
        self.arriving.remove(&id);
    }

    pub(crate) fn move_to(mut self, others: &mut Ranked<J>) {
        while let Some((id, job)) = self.jobs.pop_first() {
            others.insert(id, job);
        }
    }
}

impl<J: Jobs> Line<J> {
    /// Takes in how a joint job is to wait, right after it arrived.
    pub(crate) fn admit_joint(&mut self, id: JobId, gate: Gate) {
        match gate {
            Gate::Closed => drop(self.gated.arriving.insert(id)),
            // Its other slots are near.
            Gate::Open => self.hurry = true,
        }
    }

    /// Puts a job that has its ticket now where it belongs.
    pub(crate) fn place(&mut self, id: JobId, job: Waiting<J::Job>) {
        if self.gated.arriving.remove(&id) {
            self.gated.jobs.insert(id, job);
        } else {
            self.waiting.insert(id, job);
        }
    }

    /// Lets a job start when a slot comes, and asks for one.
    pub(crate) fn open_gate(&mut self, id: JobId, now: Instant) {
        if self.gated.arriving.remove(&id) {
            self.hurry = true;
        } else if let Some(job) = self.gated.jobs.remove(id) {
            self.waiting.insert(id, job);
            self.ask_at = Some(now);
            self.ask_again = true;
        }
    }

    /// Keeps a job from starting that has not started.
    pub(crate) fn close_gate(&mut self, id: JobId) {
        if let Some(job) = self.waiting.remove(id) {
            self.gated.jobs.insert(id, job);
        } else if self.without_ticket_at(id) {
            self.gated.arriving.insert(id);
        }
    }

    fn without_ticket_at(&self, id: JobId) -> bool {
        let batch = self.taking.iter().map(|taking| &taking.batch);
        batch.chain([&self.arriving]).any(|batch| batch.binary_search_by_key(&id, |at| at.id).is_ok())
    }

    /// Puts a job back that did not use its slot: behind its gate, with its old place and the ticket, which
    /// is late now.
    pub(crate) fn give_back(&mut self, id: JobId, ticket: Ticket, job: Waiting<J::Job>) {
        self.running.remove(&id);
        self.index.note(id, &job);
        self.gated.jobs.insert(id, job);
        self.tickets.insert(ticket);
    }

    /// Keeps the ticket of a slot for which no job is ready, if it is that of a job that is gated.
    pub(crate) fn keep_for_gated(&mut self, ticket: Ticket) {
        if self.tickets.len() + self.grants.len() < self.gated.len() {
            self.tickets.insert(ticket);
        }
    }

    /// How many tickets there are to ask a slot for.
    pub(crate) fn to_ask(&self) -> usize {
        self.tickets.len().min(self.waiting.len().saturating_sub(self.grants.len()))
    }

    /// When the state is to hear of the tickets that are held for gated jobs; a pause needs no lease.
    pub(crate) fn hold_due(&self) -> Option<Instant> {
        if !self.present || self.gated.len() == 0 || self.memory.paused {
            return None;
        }
        let renew_at = self.last_step + self.half_a_lease();
        let told = self.told.filter(|_| self.to_ask() == 0 && self.grants.is_empty())?;
        let passes = self.slot_of(told, renew_at) + PASSED;
        Some(renew_at.min(passes.max(self.last_step + PASSED)))
    }

    /// The place among its tickets of the first that the state is to know of.
    ///
    /// Those whose slots have passed are not among them: who is behind them would leave them their slots
    /// again, and those that are late already would get in the way of everybody. For a job that is ready the
    /// last of them is used: its slot is now.
    pub(crate) fn first_to_tell(&self, now: Instant) -> usize {
        if self.gated.len() == 0 {
            return 0;
        }
        let passed = self.tickets.iter().take_while(|ticket| self.slot_of(**ticket, now) < now).count();
        match self.to_ask() {
            0 => passed,
            asked => passed.saturating_sub(1).min(self.tickets.len() - asked),
        }
    }

    fn slot_of(&self, ticket: Ticket, fallback: Instant) -> Instant {
        self.clock.ours_for(self.memory.at + self.memory.slot_in(ticket), fallback)
    }

    /// How many jobs would start if there were slots.
    pub(crate) fn open_jobs(&self) -> usize {
        self.waiting.len() + self.without_ticket() - self.gated.arriving.len()
    }

    /// The first job to start of those that have no ticket and are not gated.
    pub(crate) fn first_arriving(&self) -> Option<Rank> {
        let batch = self.taking.iter().map(|taking| &taking.batch);
        let open = batch.chain([&self.arriving]).flatten().filter(|arriving| !self.gated.holds(arriving.id));
        let mut ranks = open.map(|arriving| Rank::of(arriving.id, &arriving.job));
        if self.arriving_is_ranked { ranks.min() } else { ranks.next() }
    }

    /// When a joint job that has its ticket could start, if every ticket before it is used; none if nobody
    /// can tell.
    pub(crate) fn outlook(&self, id: JobId, priority: i32, now: Instant) -> Option<Instant> {
        if self.memory.paused || self.failing.is_some() {
            return None;
        }
        let open = self.waiting.count_before(priority, id);
        let before = open + self.gated.jobs.count_before(priority, id);
        let ticket = self.own_tickets().nth(before).or_else(|| self.own_tickets().last())?;
        let granted = self.grants.iter().find(|grant| grant.ticket == ticket).map(|grant| grant.slot);
        // Late tickets are served one after the other.
        let intervals = (open as u64).max(self.memory.ahead_of(ticket));
        let intervals = intervals + self.waiting.overweight_before_place(priority, id);
        let first = self.memory.at + self.memory.slot_in(Ticket::NONE);
        Some(granted.unwrap_or_else(|| self.clock.ours_for(first + self.memory.interval * intervals, now)))
    }

    /// A joint job is to come.
    pub(crate) fn announce(&mut self) {
        self.gated.announced += 1;
    }

    /// One is not to come any more, or has.
    pub(crate) fn renounce(&mut self) {
        self.gated.announced = self.gated.announced.saturating_sub(1);
    }

    /// How many joint jobs are to come.
    pub(crate) fn announced(&self) -> usize {
        self.gated.announced
    }

    /// How many of this line's gated jobs start before a new one of that priority.
    pub(crate) fn gated_before_new(&self, priority: i32) -> usize {
        self.gated.jobs.before_new(priority)
    }
}
