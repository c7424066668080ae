//! Span, events and metrics of one job.

use std::time::{Duration, Instant};

use interval_queue_contract::Ticket;

use super::{Origin, Outcome, Scope, TARGET, Telemetry, event::emit, is_observed, scope, us};
use crate::line::{LostBecause, LostSlot};

pub(crate) struct Run {
    weight: u32,
    priority: i32,
    since: Option<Instant>,
    /// `None` if the job starts alone.
    slot: Option<Instant>,
    parent: Scope,
    begun: Option<Begun>,
}

struct Begun {
    at: Instant,
    /// Empty for a turn.
    span: Scope,
    outcome: Outcome,
}

impl Run {
    /// `None` if nothing subscribes.
    pub(crate) fn of(weight: u32, priority: i32, origin: Origin, slot: Option<Instant>) -> Option<Box<Self>> {
        is_observed().then(|| {
            let since = origin.since();
            let parent = origin.traced.map_or_else(Scope::none, |traced| traced.parent);
            Box::new(Self { weight, priority, since, slot, parent, begun: None })
        })
    }

    pub(crate) fn begin_job(
        &mut self,
        telemetry: &Telemetry,
        ticket: Ticket,
        attempt: Option<u32>,
        now: Instant,
    ) {
        let (waited, late) = self.delays(now);
        let parent = std::mem::replace(&mut self.parent, Scope::none());
        let span = parent.child(|parent| {
            tracing::info_span!(
                target: TARGET,
                parent: parent,
                "job",
                queue = %telemetry.queue,
                shard = %telemetry.shard,
                ticket = number(ticket),
                weight = self.weight,
                priority = self.priority,
                attempt,
                waited_us = waited.map(us),
                late_us = late.map(us),
            )
        });
        span.run(|| self.log_start(telemetry, ticket, attempt, now));
        // The outcome, unless the job ends by itself.
        self.begun = Some(Begun { at: now, span, outcome: Outcome::Cancelled });
    }

    pub(crate) fn scope(run: Option<&Self>) -> &Scope {
        run.and_then(|run| run.begun.as_ref()).map_or(&scope::NONE, |begun| &begun.span)
    }

    pub(crate) fn begin_turn(&mut self, telemetry: &Telemetry, ticket: Ticket, now: Instant) {
        self.begin_in(Scope::none(), Outcome::Ok, telemetry, ticket, now);
    }

    /// Begins in the `span` of the first queue.
    pub(crate) fn begin_in_span(&mut self, span: Scope, telemetry: &Telemetry, ticket: Ticket, now: Instant) {
        self.begin_in(span, Outcome::Cancelled, telemetry, ticket, now);
    }

    /// In the caller's span if `span` is empty. `outcome` applies unless `ended` is called.
    fn begin_in(
        &mut self,
        span: Scope,
        outcome: Outcome,
        telemetry: &Telemetry,
        ticket: Ticket,
        now: Instant,
    ) {
        self.parent = Scope::none();
        span.run(|| self.log_start(telemetry, ticket, None, now));
        self.begun = Some(Begun { at: now, span, outcome });
    }

    pub(crate) fn ended(&mut self, outcome: Outcome) {
        if let Some(begun) = &mut self.begun {
            begun.outcome = outcome;
        }
    }

    /// A run that has not begun has lost its slot.
    pub(crate) fn over(self, telemetry: &Telemetry, ticket: Ticket, now: Instant) {
        match self.begun {
            Some(Begun { at, span, outcome }) => {
                let ran = now.saturating_duration_since(at);
                telemetry.meter.finished(outcome, ran);
                span.run(|| log_end(telemetry, ticket, outcome, ran));
            }
            None if self.slot.is_some() => {
                telemetry.slot_lost(&LostSlot { ticket, because: LostBecause::Unwanted });
            }
            None => {}
        }
    }

    fn log_start(&self, telemetry: &Telemetry, ticket: Ticket, attempt: Option<u32>, now: Instant) {
        let (waited, late) = self.delays(now);
        telemetry.meter.started(waited, late);
        emit!(
            telemetry,
            DEBUG,
            "job.started",
            "the job starts",
            ticket = number(ticket),
            weight = self.weight,
            priority = self.priority,
            attempt,
            waited_us = waited.map(us),
            late_us = late.map(us)
        );
    }

    /// Delays since adding, and since the slot.
    fn delays(&self, now: Instant) -> (Option<Duration>, Option<Duration>) {
        let since = |instant: Instant| now.saturating_duration_since(instant);
        (self.since.map(since), self.slot.map(since))
    }
}

fn log_end(telemetry: &Telemetry, ticket: Ticket, outcome: Outcome, ran: Duration) {
    emit!(
        telemetry, WARN if matches!(outcome, Outcome::Panicked | Outcome::TimedOut), else DEBUG, "job.finished",
        "the job has ended",
        ticket = number(ticket), outcome = outcome.name(), ran_us = us(ran)
    );
}

/// `None` for a job that starts alone.
pub(super) fn number(ticket: Ticket) -> Option<u64> {
    (ticket != Ticket::NONE).then(|| ticket.get())
}
