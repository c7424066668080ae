//! Joint jobs, which wait for slots of several queues.
//!
//! No slot is requested for a job behind its gate; if its slot comes, another job of the shard uses
//! it. A held ticket can so pass its slot, which costs other shards that slot; from then on it is
//! not reported until the gate opens.

use std::time::{Duration, Instant};

use interval_queue_contract::Ticket;

use crate::{
    jobs::{JobId, Waiting},
    line::Line,
};

/// Delayed, so that several share a command.
const PASSED_DELAY: Duration = Duration::from_millis(100);

impl<J, C, A> Line<J, C, A> {
    /// Lets a job start, and requests its slot.
    pub fn open_gate(&mut self, id: JobId, now: Instant) {
        if self.backlog.open_gate(id) {
            self.connection.ask(now);
        }
    }

    /// Changes the weight of a gated job, chosen by late binding.
    pub fn set_weight(&mut self, id: JobId, weight: u32) {
        self.backlog.set_weight(id, weight);
    }

    /// Returns a job that did not use its slot behind its gate, with its old place and its now late
    /// ticket.
    pub fn give_back(&mut self, id: JobId, ticket: Ticket, job: Waiting<J>) {
        self.running.remove(&id);
        self.backlog.index.note(id, &job);
        self.backlog.gated.insert(id, job);
        self.held.tickets.insert(ticket);
    }

    pub(crate) fn to_ask(&self) -> usize {
        self.held.tickets.len().min(self.backlog.waiting.len().saturating_sub(self.held.grants.len()))
    }

    /// `None` in a pause, which needs no lease.
    pub(crate) fn hold_due(&self) -> Option<Instant> {
        if !self.connection.present || self.backlog.gated.is_empty() || self.connection.memory.paused {
            return None;
        }
        let renew_at = self.renew_at();
        let ticket =
            self.connection.lowest_reported.filter(|_| self.to_ask() == 0 && self.held.grants.is_empty())?;
        let passes = self.slot_of(ticket, renew_at) + PASSED_DELAY;
        Some(renew_at.min(passes.max(self.connection.last_step + PASSED_DELAY)))
    }

    /// Tickets whose slots have passed are left out: later shards would leave them slots again, and
    /// late ones would delay every shard. A ready job uses the last of them: its slot is now.
    pub(crate) fn first_to_report(&self, now: Instant) -> usize {
        if self.backlog.gated.is_empty() {
            return 0;
        }
        let tickets = &self.held.tickets;
        let passed = tickets.iter().take_while(|ticket| self.slot_of(**ticket, now) < now).count();
        match self.to_ask() {
            0 => passed,
            asked => passed.saturating_sub(1).min(tickets.len() - asked),
        }
    }

    fn slot_of(&self, ticket: Ticket, fallback: Instant) -> Instant {
        let memory = &self.connection.memory;
        self.slot_behind(memory, memory.ahead_of(ticket), 1, fallback)
    }
}
