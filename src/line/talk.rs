//! What a shard says to the state and what it makes of the answer: the line as steps, replies into the line.

use std::{collections::VecDeque, time::Duration};

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use interval_queue_contract::{
    Ask, Late, MAX_ASK, MAX_TAKE, Micros, StateError, Step, Stepped, Take, Ticket, WaitReason,
};
use tokio::time::Instant;

use super::{Arriving, Granted, Jobs, Line, Taking, Tolerance, lost::LostBecause, waiting::Waiting};

/// What the driver does next.
pub(crate) enum Next {
    /// Sends this step.
    Send(Box<Step>),
    /// Waits for this instant or to be woken.
    Sleep(Option<Instant>),
    /// Ends: there is nothing to wait for.
    Stop,
}

/// The state does not answer.
pub(crate) struct Failing {
    pub(crate) since: Instant,
    pub(crate) error: String,
    tries: u32,
    retry_at: Instant,
    delays: ExponentialBackoff,
}

impl Failing {
    /// The next try may come at once.
    pub(crate) fn retry_now(&mut self, now: Instant) {
        self.retry_at = now;
    }
}

/// The first and the longest time between two tries, before jitter.
pub(crate) const RETRY: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(5));

/// The longest that a command may take. A backend should give up earlier; one that hangs cannot hang the
/// shard.
pub(crate) const COMMAND_TIMEOUT: Duration = Duration::from_secs(10);

/// When a deadline has passed.
fn just_after(deadline: Instant) -> Instant {
    deadline.checked_add(Duration::from_nanos(1)).unwrap_or(deadline)
}

/// How often a shard with nothing left to do tries to say so.
const GOODBYES: u32 = 5;

/// What a reply brought besides grants.
pub(crate) struct Absorbed<J: Jobs> {
    /// Jobs that have their ticket now; to be told when the line is not locked.
    pub(crate) taken: Vec<(J::Caller, Ticket)>,
    /// How long the state had been failing, if it had.
    pub(crate) outage: Option<Duration>,
    /// For how long the shard keeps to its share, if it may have run alone until now.
    pub(crate) settling: Option<Duration>,
}

impl<J: Jobs> Line<J> {
    /// Decides what the driver does next.
    pub(crate) fn next(&mut self, now: Instant, lead: Micros, step_under_way: bool) -> Next {
        let next_start = self.next_grant(now).or_else(|| self.alone_due());
        let next_start = next_start.into_iter().chain(self.index.first_deadline().map(just_after)).min();
        if step_under_way {
            return Next::Sleep(next_start);
        }
        let nothing_left = self.is_quiet();
        let given_up = self.failing.as_ref().is_some_and(|failing| failing.tries >= GOODBYES);
        // Tickets that may have been taken for withdrawn jobs are part of what there is to say.
        let unknown = !self.present && self.taking.is_none();
        if nothing_left && (given_up || unknown) {
            // What the record still knows of us ends with the lease.
            self.present = false;
            self.taking = None;
            self.given_up = None;
            self.report = false;
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

    /// When the state is to hear of us again; none: when something happens here.
    fn step_due(&self, now: Instant, lead: Micros, nothing_left: bool) -> Option<Instant> {
        let take = self.taking.is_some() || self.retake > 0;
        let tell = self.present && (self.report || (self.given_up.is_some() && self.tickets.is_empty()));
        let due = if take || tell || nothing_left {
            Some(now)
        } else {
            let take_at = self.arriving.front().map(|first| self.take_due(first.since, lead));
            let asks = self.to_ask() > 0 || (self.ask_again && !self.tickets.is_empty());
            let ask_at = self.ask_at.filter(|_| asks);
            let ask_at = ask_at.and_then(|ask_at| self.ask_due(ask_at, now));
            let renew_at = (!self.running.is_empty()).then(|| self.last_step + self.half_a_lease());
            let hold_at = self.hold_due();
            take_at.into_iter().chain(ask_at).chain(renew_at).chain(hold_at).min()
        };
        match &self.failing {
            Some(failing) => due.map(|due| due.max(failing.retry_at)),
            None => due,
        }
    }

    /// When a job that came at `since` takes its ticket, unless the shard asks for a slot before. On a fast
    /// queue a shard that has enough to ask for saves half its commands so.
    fn take_due(&self, since: Instant, lead: Micros) -> Instant {
        let linger = self.identity.linger;
        let fast = self.memory.interval.to_duration() <= linger;
        if fast && !self.hurry && self.ask_at.is_some() && self.to_ask() >= self.within(lead) {
            since + linger
        } else {
            since
        }
    }

    /// For how many tickets to ask at once.
    fn within(&self, lead: Micros) -> usize {
        let spanned = usize::try_from(lead.get() / self.memory.interval.get().max(1)).unwrap_or(MAX_ASK);
        spanned.saturating_add(1).min(MAX_ASK)
    }

    pub(crate) fn half_a_lease(&self) -> Duration {
        self.identity.lease.to_duration() / 2
    }

    fn step(&mut self, now: Instant, lead: Micros) -> Step {
        self.sequence += 1;
        self.last_step = now;
        self.ask_again = false;
        self.overruns += u32::from(std::mem::take(&mut self.overran));
        let interval = self.memory.interval.to_duration();
        self.tolerance = Tolerance::after(self.overruns, interval, lead.to_duration());
        self.begin_taking();

        let sharing = self.keeps_to_share(now);
        let most = match sharing {
            true => usize::from(self.may_ask(now)),
            false => self.within(lead),
        };
        let batch = self.taking.iter().flat_map(|taking| &taking.batch);
        let batch = batch.filter(|arriving| !self.gated.holds(arriving.id)).map(|arriving| &arriving.job);
        let mut weights = self.waiting.values().chain(batch).map(|job| job.weight).skip(self.grants.len());
        let lead = self.cautious(lead, most, now);
        let first = self.first_to_tell(now);
        let ask: Vec<_> = self
            .tickets
            .iter()
            .skip(first)
            .take(most)
            .zip(&mut weights)
            .map(|(&ticket, weight)| Ask { ticket, weight })
            .collect();
        let left = self.tickets.iter().nth(first + ask.len()).copied();
        let then = left.filter(|_| !sharing);
        self.told = ask.first().map(|ask| ask.ticket).or(then);
        let take = self.taking.as_ref().map(|taking| {
            let room = if left.is_some() { 0 } else { most - ask.len() };
            let weights = weights.take(room.min(taking.count as usize)).collect();
            Take { request: taking.request, count: taking.count, weights }
        });
        Step {
            shard: self.identity.shard.clone(),
            label: self.identity.label.clone(),
            sequence: self.sequence,
            memory: self.memory,
            lease: self.identity.lease,
            lead,
            take,
            ask,
            then,
            // That a ticket misses its slot is then our own doing.
            late: if sharing { Late::NextSlot } else { self.identity.late },
            running: u32::try_from(self.running.len() + self.grants.len()).unwrap_or(u32::MAX),
            given_up: self.given_up,
        }
    }

    /// The lead with which no heavy job is granted a slot after its deadline: the slots behind it would be
    /// lost.
    fn cautious(&self, lead: Micros, most: usize, now: Instant) -> Micros {
        if self.index.first_deadline().is_none() {
            return lead;
        }
        let asked = self.waiting.values().skip(self.grants.len()).take(most);
        let heavy = asked.filter(|job| job.weight > 1).filter_map(Waiting::deadline).min();
        // Half of the lead is for the round trip.
        let left = heavy.map(|deadline| Micros::from_duration(deadline.saturating_duration_since(now)));
        left.map_or(lead, |left| lead.min(left - Micros::new(lead.get() / 2)))
    }

    /// Gathers the jobs that have come since the last take. A take that failed is tried again as it was.
    fn begin_taking(&mut self) {
        if self.taking.is_some() || (self.arriving.is_empty() && self.retake == 0) {
            return;
        }
        let retaken = self.retake.min(MAX_TAKE);
        self.retake -= retaken;
        let room = (MAX_TAKE - retaken) as usize;
        self.hurry &= self.arriving.len() > room;
        let batch: VecDeque<_> = self.arriving.drain(..self.arriving.len().min(room)).collect();
        let count = retaken + u32::try_from(batch.len()).unwrap_or(MAX_TAKE);
        self.request += 1;
        self.taking = Some(Taking { request: self.request, count, retaken, batch });
    }

    /// Takes in the reply to `step`.
    pub(crate) fn absorb(
        &mut self,
        step: &Step,
        stepped: Stepped,
        sent: Instant,
        received: Instant,
    ) -> Absorbed<J> {
        let at = stepped.memory.at;
        let mut acknowledged = Vec::new();
        self.answered = step.sequence;
        self.heard = received;
        self.clock.observe(at, sent, received);
        self.present = stepped.present;
        self.memory.learn(stepped.memory);
        self.count_others(&stepped.memory);
        let settling = self.rejoin(received);
        self.report &= step.running as usize != self.running.len() + self.grants.len();
        if self.given_up == step.given_up {
            self.given_up = None;
        }
        if let (Some(taken), Some(taking)) = (stepped.taken, self.taking.take()) {
            self.tickets.extend((0..u64::from(taken.count)).map(|n| taken.first.after(n)));
            for (ticket, arriving) in
                (u64::from(taking.retaken)..).map(|n| taken.first.after(n)).zip(taking.batch)
            {
                self.place(arriving.id, arriving.job);
                acknowledged.push((arriving.caller, ticket));
            }
        }
        for (grant, weight) in stepped.grants.into_iter().zip(weights_of(step)) {
            let slot = self.clock.latest_for(at + grant.start_in, received);
            if self.hand_over(grant.ticket) {
                self.grants.push_back(Granted { ticket: grant.ticket, slot, heard: received, weight });
            } else {
                self.lose_slot(grant.ticket, LostBecause::Unwanted);
                self.report |= self.memory.max_running.is_some();
            }
        }
        self.grants.make_contiguous().sort_by_key(|grant| (grant.slot, grant.ticket));
        let wait = stepped.wait;
        if wait.as_ref().is_some_and(|wait| wait.reason == WaitReason::Missed) {
            self.requeue_missed();
        }
        self.ask_at = match wait {
            Some(wait) if !self.ask_again => {
                wait.ask_in.map(|ask_in| self.clock.ours_for(at + ask_in, received))
            }
            _ => Some(received),
        };
        self.trim();
        let outage = self.failing.take().map(|failing| received.saturating_duration_since(failing.since));
        Absorbed { taken: acknowledged, outage, settling }
    }

    /// Takes a ticket out, as a rule the lowest. False if it is not here any more.
    fn hand_over(&mut self, ticket: Ticket) -> bool {
        if self.tickets.first() == Some(&ticket) {
            self.tickets.pop_first();
            return true;
        }
        self.tickets.remove(&ticket)
    }

    /// Gives up the tickets that missed their slots for fresh ones.
    fn requeue_missed(&mut self) {
        let missed = self.tickets.range(..=self.memory.current).count();
        for _ in 0..missed {
            self.tickets.pop_first();
        }
        self.retake = self.retake.saturating_add(u32::try_from(missed).unwrap_or(u32::MAX));
    }

    /// Takes in that a step got no reply. Jobs keep waiting; those without a ticket are returned if the error
    /// will not pass by itself, to be refused when the line is not locked.
    #[must_use]
    pub(crate) fn fail(&mut self, error: &StateError, now: Instant, seed: u64) -> VecDeque<Arriving<J>> {
        self.answered = self.sequence;
        self.lose(error, now, seed);
        let mut failing = self.failing.take().unwrap_or_else(|| Failing {
            since: now,
            error: String::new(),
            tries: 0,
            retry_at: now,
            delays: ExponentialBuilder::new()
                .with_min_delay(RETRY.0)
                .with_max_delay(RETRY.1)
                .without_max_times()
                .with_jitter()
                .with_jitter_seed(seed)
                .build(),
        });
        failing.error = error.to_string();
        failing.tries += 1;
        failing.retry_at = now + failing.delays.next().unwrap_or(RETRY.1);
        self.failing = Some(failing);
        if error.is_retryable() {
            return VecDeque::new();
        }
        let Some(taking) = self.taking.take() else {
            return VecDeque::new();
        };
        for refused in &taking.batch {
            self.index.forget(refused.id, &refused.job);
            self.gated.forget(refused.id);
        }
        self.retake += taking.retaken;
        taking.batch
    }

    /// Asks the state again at once, also if it was failing.
    pub(crate) fn nudge(&mut self, now: Instant) {
        self.ask_at = Some(now);
        self.ask_again = true;
        if let Some(failing) = &mut self.failing {
            failing.retry_now(now);
        }
    }
}

/// The weights asked for, in the order of the tickets.
fn weights_of(step: &Step) -> impl Iterator<Item = u32> {
    let taken = step.take.iter().flat_map(|take| &take.weights);
    step.ask.iter().map(|ask| ask.weight).chain(taken.copied())
}
