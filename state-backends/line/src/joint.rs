//! Joint jobs, which wait for slots of several queues. The state is asked for no slot for those behind their
//! gate, and a slot that comes all the same is used by another job of the shard. So a ticket that is held for
//! one can pass its slot, which costs the others that one slot; the state then hears of it no more until the
//! gate is open.

use std::time::{Duration, Instant};

use interval_queue_contract::Ticket;

use crate::{
    jobs::{JobId, Waiting},
    line::Line,
};

/// How long after its slot a ticket that is held counts as late, so that not each of many is a command of its
/// own.
const PASSED: Duration = Duration::from_millis(100);

impl<J, C, A> Line<J, C, A> {
    /// Lets a job start when a slot comes, and asks for one.
    pub fn open_gate(&mut self, id: JobId, now: Instant) {
        if self.backlog.open_gate(id) {
            self.contact.ask(now);
        }
    }

    /// Gives a job behind its gate another weight: what runs in its place was chosen late.
    pub fn set_weight(&mut self, id: JobId, weight: u32) {
        self.backlog.set_weight(id, weight);
    }

    /// Puts a job back that did not use its slot: behind its gate, with its old place and the ticket, which
    /// is late now.
    pub fn give_back(&mut self, id: JobId, ticket: Ticket, job: Waiting<J>) {
        self.running.remove(&id);
        self.backlog.index.note(id, &job);
        self.backlog.gated.insert(id, job);
        self.hand.tickets.insert(ticket);
    }

    /// How many tickets there are to ask a slot for.
    pub(crate) fn to_ask(&self) -> usize {
        self.hand.tickets.len().min(self.backlog.waiting.len().saturating_sub(self.hand.grants.len()))
    }

    /// When the state is to hear of the tickets that are held for gated jobs; a pause needs no lease.
    pub(crate) fn hold_due(&self) -> Option<Instant> {
        if !self.contact.present || self.backlog.gated.is_empty() || self.contact.memory.paused {
            return None;
        }
        let renew_at = self.renew_at();
        let told = self.contact.told.filter(|_| self.to_ask() == 0 && self.hand.grants.is_empty())?;
        let passes = self.slot_of(told, renew_at) + PASSED;
        Some(renew_at.min(passes.max(self.contact.last_step + PASSED)))
    }

    /// The place among its tickets of the first that the state is to know of.
    ///
    /// Those whose slots have passed are not among them: a shard behind them would leave them their slots
    /// again, and those that are late already would get in the way of everybody. For a job that is ready the
    /// last of them is used: its slot is now.
    pub(crate) fn first_to_tell(&self, now: Instant) -> usize {
        if self.backlog.gated.is_empty() {
            return 0;
        }
        let tickets = &self.hand.tickets;
        let passed = tickets.iter().take_while(|ticket| self.slot_of(**ticket, now) < now).count();
        match self.to_ask() {
            0 => passed,
            asked => passed.saturating_sub(1).min(tickets.len() - asked),
        }
    }

    fn slot_of(&self, ticket: Ticket, fallback: Instant) -> Instant {
        let memory = &self.contact.memory;
        self.slot_behind(memory, memory.ahead_of(ticket), 1, fallback)
    }
}
