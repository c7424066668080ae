//! When a shard sends a step, and its contents.

use std::time::{Duration, Instant};

use interval_queue_contract::{Ask, Late, MAX_ASK, Meter, Micros, Step, Take};

use crate::{grant::Tolerance, jobs::Waiting, line::Line, space::SpaceBy};

/// The next action of the driver.
#[derive(Debug)]
pub enum Next {
    /// Send this step.
    Send(Box<Step>),
    /// Read the record, to estimate starts before jobs take tickets.
    Read,
    /// Wait for this instant or to be woken.
    Sleep(Option<Instant>),
    /// End: nothing to wait for.
    Stop,
}

/// A job is overdue only after its deadline.
fn just_after(deadline: Instant) -> Instant {
    deadline.checked_add(Duration::from_nanos(1)).unwrap_or(deadline)
}

/// Tries to report that nothing is left.
const MAX_FINAL_TRIES: u32 = 5;

impl<J, C, A> Line<J, C, A> {
    /// Decides what the driver does next.
    pub fn next(&mut self, now: Instant, lead: Micros, step_under_way: bool) -> Next {
        let spacing = self.connection.memory.spacing().to_duration();
        let lead = self.identity.space_by.lead(lead, spacing, self.clock.uncertainty());
        let next_start =
            self.held.next_grant(self.connection.memory.spacing(), now).or_else(|| self.alone_due());
        let next_start =
            next_start.into_iter().chain(self.backlog.index.first_deadline().map(just_after)).min();
        if step_under_way {
            return Next::Sleep(next_start);
        }
        if !self.backlog.unestimated.is_empty() {
            return Next::Read;
        }
        let nothing_left = self.is_quiet();
        let given_up =
            self.connection.failing.as_ref().is_some_and(|failing| failing.tries >= MAX_FINAL_TRIES);
        // A take under way may hold tickets of withdrawn jobs; the store must learn of them.
        let unknown =
            !self.connection.present && self.backlog.taking.is_none() && self.held.late_start.is_none();
        if nothing_left && (given_up || unknown) {
            self.connection.present = false;
            self.backlog.taking = None;
            (self.held.given_up, self.held.late_start) = (None, None);
            self.connection.report = false;
            return Next::Stop;
        }
        match self.step_due(now, lead, nothing_left) {
            Some(due) if due <= now => Next::Send(Box::new(self.step(now, lead))),
            due => match due.into_iter().chain(next_start).min() {
                None if self.running.is_empty() => Next::Stop,
                wake => Next::Sleep(wake),
            },
        }
    }

    /// `None`: when woken.
    fn step_due(&self, now: Instant, lead: Micros, nothing_left: bool) -> Option<Instant> {
        let take = self.backlog.taking.is_some() || self.held.retake > 0;
        let reports = self.connection.present
            && (self.connection.report || (self.held.given_up.is_some() && self.held.tickets.is_empty()));
        let due = if take || reports || nothing_left || self.held.late_start.is_some() {
            Some(now)
        } else {
            let first = self.backlog.first_to_take(self.held.len());
            let take_at = first.map(|first| self.take_due(first.since, lead));
            let asks = self.to_ask() > 0 || (self.connection.ask_again && !self.held.tickets.is_empty());
            let ask_at = self.connection.ask_at.filter(|_| asks);
            let ask_at = ask_at.and_then(|ask_at| self.ask_due(ask_at, now));
            let renew_at = (!self.running.is_empty()).then(|| self.renew_at());
            // The first slot of a gated job is unknown while the store does not reply.
            let unanswered = self.connection.failing.is_some() && !self.backlog.gated.is_empty();
            let hold_at = if unanswered { Some(now) } else { self.hold_due() };
            take_at.into_iter().chain(ask_at).chain(renew_at).chain(hold_at).min()
        };
        match &self.connection.failing {
            Some(failing) => due.map(|due| due.max(failing.retry_at)),
            None => due,
        }
    }

    /// Unless the shard requests a slot before: on a fast queue it saves half its commands by
    /// waiting.
    fn take_due(&self, since: Instant, lead: Micros) -> Instant {
        let linger = self.identity.linger;
        let fast = self.connection.memory.interval().to_duration() <= linger;
        if fast
            && !self.backlog.hurry
            && self.connection.ask_at.is_some()
            && self.to_ask() >= self.within(lead)
        {
            since + linger
        } else {
            since
        }
    }

    fn within(&self, lead: Micros) -> usize {
        let most =
            |meter: &Meter| (lead.get() / meter.interval.get().max(1)).saturating_add(meter.burst.into());
        let most = self.connection.memory.meters.iter().map(most).min().unwrap_or(1);
        usize::try_from(most).unwrap_or(MAX_ASK).min(MAX_ASK)
    }

    pub(crate) fn renew_at(&self) -> Instant {
        self.connection.last_step + self.identity.lease.to_duration() / 2
    }

    fn step(&mut self, now: Instant, lead: Micros) -> Step {
        self.connection.sequence += 1;
        self.connection.last_step = now;
        self.connection.ask_again = false;
        self.held.overruns += u32::from(std::mem::take(&mut self.held.overran));
        let interval = self.connection.memory.interval().to_duration();
        let reportable = self
            .identity
            .space_by
            .reportable(self.connection.memory.spacing().to_duration(), lead.to_duration());
        self.held.tolerance = Tolerance::after(self.held.overruns, interval, lead.to_duration(), reportable);
        let retaken =
            self.backlog.begin_taking(self.connection.request + 1, self.held.retake, self.held.len());
        if let Some(retaken) = retaken {
            self.connection.request += 1;
            self.held.retake -= retaken;
        }

        let sharing = self.keeps_to_share(now);
        let most = match sharing {
            true => usize::from(self.may_ask(now)),
            false => self.within(lead),
        };
        let batch = self.backlog.taking.iter().flat_map(|taking| &taking.batch);
        let batch = batch.filter(|arriving| !self.backlog.is_held(arriving.id)).map(|arriving| &arriving.job);
        let mut weights =
            self.backlog.waiting.values().chain(batch).map(|job| job.weight).skip(self.held.grants.len());
        let lead = self.cautious(lead, most, now);
        let first = self.first_to_report(now);
        let ask: Vec<_> = self
            .held
            .tickets
            .iter()
            .skip(first)
            .take(most)
            .zip(&mut weights)
            .map(|(&ticket, weight)| Ask { ticket, weight })
            .collect();
        let left = self.held.tickets.iter().nth(first + ask.len()).copied();
        let then = left.filter(|_| !sharing);
        self.connection.lowest_reported = ask.first().map(|ask| ask.ticket).or(then);
        let take = self.backlog.taking.as_ref().map(|taking| {
            let room = if left.is_some() { 0 } else { most - ask.len() };
            let weights = weights.take(room.min(taking.count as usize)).collect();
            Take { request: taking.request, count: taking.count, weights }
        });
        Step {
            shard: self.identity.shard.clone(),
            label: self.identity.label.clone(),
            sequence: self.connection.sequence,
            memory: self.connection.reported_memory(),
            lease: self.identity.lease,
            lead,
            take,
            ask,
            then,
            // Under its share a shard misses slots deliberately.
            late: if sharing { Late::NextSlot } else { self.identity.late },
            running: u32::try_from(self.running.len() + self.held.grants.len()).unwrap_or(u32::MAX),
            given_up: self.held.given_up,
            late_start: self.held.late_start.take(),
        }
    }

    /// Whether starts should keep the interval, but late ones cannot be reported in time.
    pub fn cannot_space(&self) -> bool {
        self.identity.space_by == SpaceBy::Starts && !self.held.tolerance.reports_lateness
    }

    /// No heavy job gets a slot after its deadline, which would waste the slots.
    fn cautious(&self, lead: Micros, most: usize, now: Instant) -> Micros {
        if self.backlog.index.first_deadline().is_none() {
            return lead;
        }
        let asked = self.backlog.waiting.values().skip(self.held.grants.len()).take(most);
        let heavy = asked.filter(|job| job.weight > 1).filter_map(Waiting::deadline).min();
        let left = heavy.map(|deadline| Micros::from_duration(deadline.saturating_duration_since(now)));
        left.map_or(lead, |left| lead.min(left - Micros::new(lead.get() / 2)))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use interval_queue_contract::{Grant, Label, Late, Memory, Meters, Rates, ShardId, Stepped, Ticket};

    use super::*;
    use crate::{Granted, Identity, Terms, WhenStateIsLost};

    fn line(space_by: SpaceBy, interval: Micros, now: Instant) -> Line<()> {
        let identity = Identity {
            shard: ShardId::new("a").unwrap(),
            label: Label::new("a").unwrap(),
            lease: Micros::from_millis(5_000),
            linger: Duration::ZERO,
            late: Late::NextSlot,
            space_by,
            when_lost: WhenStateIsLost::Wait,
        };
        let mut line = Line::new(identity, now);
        line.connection.memory.meters = Meters::new(&Rates::every(interval));
        line
    }

    #[test]
    fn late_starts_are_reported_even_with_slow_timers() {
        let now = crate::now();
        for (space_by, lead, reports_lateness) in [(SpaceBy::Starts, 5, true), (SpaceBy::Slots, 120, false)] {
            let mut line = line(space_by, Micros::from_millis(10), now);
            line.held.tickets.insert(Ticket::new(1));
            line.connection.ask(now);
            line.backlog
                .waiting
                .insert(1, Waiting::new(Terms { weight: 1, priority: 0, deadline: None, group: None }, ()));
            let Next::Send(step) = line.next(now, Micros::from_millis(120), false) else {
                panic!("nothing is asked")
            };
            assert_eq!(step.lead, Micros::from_millis(lead), "{space_by:?}");
            assert_eq!(line.held.tolerance.reports_lateness, reports_lateness, "{space_by:?}");
        }
    }

    #[test]
    fn a_heavy_job_requests_a_slot_while_lighter_grants_are_held() {
        let now = crate::now();
        let mut line = line(SpaceBy::Slots, Micros::from_millis(5), now);
        for (id, weight) in [(1, 3), (2, 1), (3, 1)] {
            let terms = Terms { weight, priority: 0, deadline: None, group: None };
            line.backlog.waiting.insert(id, Waiting::new(terms, ()));
        }
        line.held.tickets.insert(Ticket::new(1));
        line.held.grants.extend([2, 3].map(|n| Granted {
            ticket: Ticket::new(n),
            slot: now,
            store_slot: Micros::ZERO,
            received: now,
            weight: 1,
        }));
        assert!(line.next_due(now).is_none());
        let Next::Send(step) = line.next(now, Micros::from_millis(20), false) else {
            panic!("nothing is asked")
        };
        let asked: Vec<_> = step.ask.iter().map(|ask| (ask.ticket.get(), ask.weight)).collect();
        assert_eq!(asked, [(1, 3), (2, 1), (3, 1)]);
    }

    /// Tickets granted in one reply each: step sent and answered (ms after the start), the store's
    /// clock then, and the slot (ms).
    fn granted(replies: &[(u64, u64, u64, u64)]) -> Line<()> {
        let began = crate::now();
        let mut line = line(SpaceBy::Slots, Micros::from_millis(5), began);
        for (ticket, &(sent, received, at, slot)) in (1..).zip(replies) {
            let [sent, received] = [sent, received].map(|after| began + Duration::from_millis(after));
            let terms = Terms { weight: 1, priority: 0, deadline: None, group: None };
            line.backlog.waiting.insert(ticket, Waiting::new(terms, ()));
            let ticket = Ticket::new(ticket);
            line.held.tickets.insert(ticket);
            let ask = vec![Ask { ticket, weight: 1 }];
            let step =
                Step::idle(line.identity.shard.clone(), 1, Memory::default(), Micros::from_millis(5_000));
            let grants = vec![Grant { ticket, slot: Micros::from_millis(slot) }];
            let memory = Memory { at: Micros::from_millis(at), ..line.connection.memory };
            let stepped = Stepped { memory, taken: None, grants, wait: None, present: true };
            line.absorb(&Step { ask, ..step }, stepped, sent, received);
        }
        line
    }

    #[test]
    fn grants_for_one_slot_keep_their_order_despite_clock_bounds() {
        let line = granted(&[(0, 0, 10_000, 15_000), (4_000, 4_000, 14_000, 15_000)]);
        let tickets: Vec<_> = line.held.grants.iter().map(|grant| grant.ticket.get()).collect();
        assert_eq!(tickets, [1, 2], "{:?}", line.held.grants);
    }

    #[test]
    fn slots_after_a_clock_step_do_not_wait_for_earlier_ones() {
        let line = granted(&[(0, 0, 10_000, 10_400), (10, 10, 70_010, 70_015), (20, 20, 70_020, 70_025)]);
        let first = line.held.grants[0].slot;
        let slots =
            line.held.grants.iter().map(|grant| (grant.ticket.get(), (grant.slot - first).as_millis()));
        assert_eq!(slots.collect::<Vec<_>>(), [(2, 0), (3, 10), (1, 385)]);
    }

    #[test]
    fn a_slot_read_by_a_slow_reply_is_corrected_by_a_quick_one() {
        let line =
            granted(&[(0, 500, 10_000, 10_800), (510, 510, 10_510, 10_805), (520, 520, 10_520, 10_600)]);
        let first = line.held.grants[0].slot;
        let slots =
            line.held.grants.iter().map(|grant| (grant.ticket.get(), (grant.slot - first).as_millis()));
        assert_eq!(slots.collect::<Vec<_>>(), [(3, 0), (1, 200), (2, 205)]);
    }
}
