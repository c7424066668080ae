//! Takes in the reply to a step, or its failure.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use interval_queue_contract::{Ask, StateError, Step, Stepped, Ticket, WaitReason};

use crate::{grant::Granted, jobs::Arriving, line::Line};

/// Effects of a reply besides grants.
#[derive(Debug)]
pub struct Absorbed<C = ()> {
    /// Jobs that have their ticket now. Notify their callers with the line unlocked.
    pub taken: Vec<(C, Ticket)>,
    /// Length of the outage that this reply ended.
    pub outage: Option<Duration>,
    /// How long the shard keeps to its share, if it may have run alone.
    pub settling: Option<Duration>,
}

impl<J, C, A> Line<J, C, A> {
    /// Takes in the reply to `step`.
    pub fn absorb(&mut self, step: &Step, stepped: Stepped, sent: Instant, received: Instant) -> Absorbed<C> {
        let at = stepped.memory.at;
        let mut acknowledged = Vec::new();
        self.connection.answered = step.sequence;
        self.connection.last_reply = received;
        self.clock.observe(at, sent, received);
        self.connection.present = stepped.present;
        self.connection.learn(stepped.memory);
        self.count_others(&stepped.memory);
        let settling = self.rejoin(received);
        self.connection.report &= step.running as usize != self.running.len() + self.held.grants.len();
        if self.held.given_up == step.given_up {
            self.held.given_up = None;
        }
        if let (Some(taken), Some(taking)) = (stepped.taken, self.backlog.taking.take()) {
            self.held.tickets.extend(taken.tickets());
            for (ticket, arriving) in
                (u64::from(taking.retaken)..).map(|n| taken.first.after(n)).zip(taking.batch)
            {
                self.backlog.place(arriving.id, arriving.job);
                acknowledged.push((arriving.caller, ticket));
            }
        }
        for (grant, Ask { weight, .. }) in stepped.grants.into_iter().zip(step.asked(stepped.taken)) {
            let slot = self.clock.latest_for(grant.slot, received);
            let granted = Granted { ticket: grant.ticket, slot, store_slot: grant.slot, received, weight };
            if !self.held.receive(granted) {
                self.connection.count_again();
            }
        }
        // New bounds of the clock apply to held grants: they keep their order, and none waits
        // longer than necessary. Grants from before a clock step stay.
        for held in self.held.grants.iter_mut().filter(|held| self.clock.is_steady_since(held.received)) {
            held.slot = held.slot.min(self.clock.latest_for(held.store_slot, received));
        }
        self.held.grants.make_contiguous().sort_by_key(|grant| (grant.slot, grant.ticket));
        let wait = stepped.wait;
        if wait.as_ref().is_some_and(|wait| wait.reason == WaitReason::Missed) {
            self.held.requeue(self.connection.memory.current);
        }
        self.connection.ask_at = match wait {
            Some(wait) if !self.connection.ask_again => {
                wait.ask_in.map(|ask_in| self.clock.ours_for(at + ask_in, received))
            }
            _ => Some(received),
        };
        self.trim();
        let outage =
            self.connection.failing.take().map(|failing| received.saturating_duration_since(failing.since));
        Absorbed { taken: acknowledged, outage, settling }
    }

    /// Takes in that a step got no reply. Jobs keep waiting. After an error that will not pass by
    /// itself, the jobs of the take are returned, to be refused with the line unlocked.
    #[must_use]
    pub fn fail(&mut self, error: &StateError, now: Instant, seed: u64) -> VecDeque<Arriving<J, C>> {
        self.lose(error, now, seed);
        self.connection.fail(error, now, seed);
        let refused = self.backlog.taking.take_if(|_| !error.is_retryable());
        let Some(taking) = refused else { return VecDeque::new() };
        for refused in &taking.batch {
            self.backlog.forget(refused.id, &refused.job);
        }
        self.held.retake += taking.retaken;
        taking.batch
    }
}
