//! Starts the first waiting job when its slot comes.

use std::time::Instant;

use interval_queue_contract::{LateStart, Ticket};

use crate::{
    grant::Granted,
    jobs::{JobId, Waiting, Withdrawn},
    line::Line,
    lost::LostBecause,
    space::SpaceBy,
};

/// An action that is due for a job.
#[derive(Debug)]
pub enum Due<J, C = ()> {
    /// The job starts.
    Start(Starting<J, C>),
    /// The latest start of the job has passed.
    GiveUp(Withdrawn<J, C>),
    /// The job would start at this instant, which is too late.
    Refuse(Withdrawn<J, C>, Instant),
}

/// A job that starts now.
#[derive(Debug)]
pub struct Starting<J, C = ()> {
    /// Its id.
    pub id: JobId,
    /// The job.
    pub job: Waiting<J>,
    /// `None`: it starts alone.
    pub grant: Option<Granted>,
    /// The caller to notify, if the job has no ticket yet.
    pub caller: Option<C>,
}

/// A job that has started.
#[derive(Debug)]
pub struct Started<A = ()> {
    /// Its id.
    pub id: JobId,
    /// Time of the start.
    pub at: Instant,
    /// Number of intervals that its slot takes.
    pub weight: u32,
    /// Aborts it.
    pub abort: Option<A>,
}

impl<J, C, A> Line<J, C, A> {
    /// The next job that starts, in a slot or alone, or is too late. A grant used much too late is
    /// given up and requested again.
    pub fn next_due(&mut self, now: Instant) -> Option<Due<J, C>> {
        if let Some((job, estimate)) = self.next_refused(now) {
            return Some(Due::Refuse(job, estimate));
        }
        while let Some(grant) = self.held.usable_grant(self.connection.memory.spacing(), now) {
            // A slot in time counts, however late the timer. Overdue jobs leave first and take no
            // slot.
            if let Some(overdue) = self.backlog.index.overdue(grant.slot) {
                return self.withdraw(overdue).map(Due::GiveUp);
            }
            self.held.grants.pop_front();
            if self.held.tolerance.is_exceeded(&grant, now) {
                self.held.overran = true;
                self.held.lose(grant.ticket, LostBecause::LateStart);
                self.keep(grant.ticket, now);
            } else if let Some(starting) = self.fill(grant, now) {
                self.held.overruns = 0;
                return Some(Due::Start(starting));
            }
        }
        if let Some(overdue) = self.backlog.index.overdue(now) {
            return self.withdraw(overdue).map(Due::GiveUp);
        }
        self.next_alone(now).map(Due::Start)
    }

    /// Takes the first waiting job for a slot, and counts it as running.
    pub fn fill(&mut self, grant: Granted, now: Instant) -> Option<Starting<J, C>> {
        let Some(first) = self.backlog.waiting.first() else {
            self.held.lose(grant.ticket, LostBecause::Unwanted);
            // A gated job keeps the ticket.
            if self.held.len() < self.backlog.gated.len() {
                self.held.tickets.insert(grant.ticket);
            }
            self.connection.count_again();
            return None;
        };
        if first.weight > grant.weight {
            // If kept, the other grants would let each new grant be requested for a later job, and
            // this one would wait for ever.
            let others = std::mem::take(&mut self.held.grants);
            self.held.tickets.extend(others.iter().map(|grant| grant.ticket));
            for lost in others.iter().chain([&grant]) {
                self.held.lose(lost.ticket, LostBecause::TooLight);
            }
            self.keep(grant.ticket, now);
            return None;
        }
        let (id, job) = self.backlog.waiting.pop_first()?;
        self.start(id, &job);
        self.note_lateness(&grant, now);
        Some(Starting { id, job, grant: Some(grant), caller: None })
    }

    /// Unless a younger ticket is known to have started.
    fn note_lateness(&mut self, grant: &Granted, now: Instant) {
        let spacing = self.connection.memory.spacing().to_duration();
        let late = now.saturating_duration_since(grant.slot);
        let is_last = self.connection.memory.current <= grant.ticket;
        if self.held.tolerance.reports_lateness && late > SpaceBy::borne(spacing) && is_last {
            self.held.late_start = Some(LateStart { ticket: grant.ticket, at: self.clock.theirs_for(now) });
        }
    }

    pub(crate) fn start(&mut self, id: JobId, job: &Waiting<J>) {
        self.backlog.forget(id, job);
        self.running.insert(id, None);
    }

    fn keep(&mut self, ticket: Ticket, now: Instant) {
        self.held.tickets.insert(ticket);
        self.connection.ask(now);
        self.trim();
    }

    /// Takes in that a job started.
    pub fn started(&mut self, started: Started<A>) {
        self.held.started_at = Some(started.at);
        self.alone.last_start = Some((started.at, started.weight));
        // The job may have ended already.
        if let (Some(running), Some(handle)) = (self.running.get_mut(&started.id), started.abort) {
            *running = Some(handle);
        }
    }

    /// Takes in the end of a job. Returns whether to wake the driver.
    pub fn finish(&mut self, id: JobId) -> bool {
        self.running.remove(&id);
        self.connection.count_again();
        self.connection.report || self.running.is_empty()
    }
}
