//! What is to start: the first waiting job, when a slot has come.

use std::time::Instant;

use interval_queue_contract::{LateStart, Ticket};

use crate::{
    grant::Granted,
    jobs::{JobId, Waiting, Withdrawn},
    line::Line,
    lost::LostBecause,
    space::SpaceBy,
};

/// What there is to do with a job now.
#[derive(Debug)]
pub enum Due<J, C = ()> {
    /// It starts.
    Start(Starting<J, C>),
    /// It is too late for it.
    GiveUp(Withdrawn<J, C>),
    /// It would start then, which is too late.
    Refuse(Withdrawn<J, C>, Instant),
}

/// A job that starts now.
#[derive(Debug)]
pub struct Starting<J, C = ()> {
    /// Which one it is.
    pub id: JobId,
    /// The job.
    pub job: Waiting<J>,
    /// None if it starts alone.
    pub grant: Option<Granted>,
    /// To be told that it starts, if it has no ticket yet.
    pub caller: Option<C>,
}

/// A job that has started.
#[derive(Debug)]
pub struct Started<A = ()> {
    /// Which one it is.
    pub id: JobId,
    /// When it started.
    pub at: Instant,
    /// How many intervals its slot takes.
    pub weight: u32,
    /// Ends it.
    pub abort: Option<A>,
}

impl<J, C, A> Line<J, C, A> {
    /// The next job whose slot has come, that starts alone, or that is too late. A grant that is used much
    /// too late is given up and asked for again.
    pub fn next_due(&mut self, now: Instant) -> Option<Due<J, C>> {
        if let Some((job, quote)) = self.next_refused(now) {
            return Some(Due::Refuse(job, quote));
        }
        while let Some(grant) = self.hand.usable_grant(self.contact.memory.spacing(), now) {
            // A job that has a slot in time is in time, however late the timer was. First the others, so that
            // they take no slot.
            if let Some(overdue) = self.backlog.index.overdue(grant.slot) {
                return self.withdraw(overdue).map(Due::GiveUp);
            }
            self.hand.grants.pop_front();
            if self.hand.tolerance.is_exceeded(&grant, now) {
                self.hand.overran = true;
                self.hand.lose(grant.ticket, LostBecause::LateStart);
                self.keep(grant.ticket, now);
            } else if let Some(starting) = self.fill(grant, now) {
                self.hand.overruns = 0;
                return Some(Due::Start(starting));
            }
        }
        if let Some(overdue) = self.backlog.index.overdue(now) {
            return self.withdraw(overdue).map(Due::GiveUp);
        }
        self.next_alone(now).map(Due::Start)
    }

    /// The first waiting job for a slot that has come, counted as running.
    pub fn fill(&mut self, grant: Granted, now: Instant) -> Option<Starting<J, C>> {
        let Some(first) = self.backlog.waiting.first() else {
            self.hand.lose(grant.ticket, LostBecause::Unwanted);
            // A gated job keeps it.
            if self.hand.len() < self.backlog.gated.len() {
                self.hand.tickets.insert(grant.ticket);
            }
            self.contact.count_again();
            return None;
        };
        if first.weight > grant.weight {
            // The other grants in hand stand for the wrong jobs, too: if they were kept, each new one would
            // be asked for the job behind this one, and this one would wait for ever.
            let others = std::mem::take(&mut self.hand.grants);
            self.hand.tickets.extend(others.iter().map(|grant| grant.ticket));
            for lost in others.iter().chain([&grant]) {
                self.hand.lose(lost.ticket, LostBecause::TooLight);
            }
            self.keep(grant.ticket, now);
            return None;
        }
        let (id, job) = self.backlog.waiting.pop_first()?;
        self.start(id, &job);
        self.note_lateness(&grant, now);
        Some(Starting { id, job, grant: Some(grant), caller: None })
    }

    /// Notes a start that is to be told because it came late, if no younger ticket is known to have started.
    fn note_lateness(&mut self, grant: &Granted, now: Instant) {
        let spacing = self.contact.memory.spacing().to_duration();
        let late = now.saturating_duration_since(grant.slot);
        let is_last = self.contact.memory.current <= grant.ticket;
        if self.hand.tolerance.is_told && late > SpaceBy::borne(spacing) && is_last {
            self.hand.late_start = Some(LateStart { ticket: grant.ticket, at: self.clock.theirs_for(now) });
        }
    }

    /// Counts a job as running that left the backlog.
    pub(crate) fn start(&mut self, id: JobId, job: &Waiting<J>) {
        self.backlog.forget(id, job);
        self.running.insert(id, None);
    }

    fn keep(&mut self, ticket: Ticket, now: Instant) {
        self.hand.tickets.insert(ticket);
        self.contact.ask(now);
        self.trim();
    }

    /// Takes in that a job started.
    pub fn started(&mut self, started: Started<A>) {
        self.hand.started_at = Some(started.at);
        self.alone.last_start = Some((started.at, started.weight));
        // It may have ended already.
        if let (Some(running), Some(handle)) = (self.running.get_mut(&started.id), started.abort) {
            *running = Some(handle);
        }
    }

    /// A job that was counted as running runs no more. Whether the driver has to know.
    pub fn finish(&mut self, id: JobId) -> bool {
        self.running.remove(&id);
        self.contact.count_again();
        self.contact.report || self.running.is_empty()
    }
}
