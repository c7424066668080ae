//! A shard's line: its jobs, its tickets, and how it stands with the state.

use std::{
    collections::HashMap,
    hash::BuildHasherDefault,
    time::{Duration, Instant},
};

use interval_queue_contract::{Changed, Label, Late, Memory, Micros, ShardId, Snapshot};

use crate::{
    alone::Alone,
    backlog::Backlog,
    clock::StateClock,
    contact::Contact,
    hand::Hand,
    jobs::{Arriving, Gate, GroupId, IdHasher, JobId, Waiting, Withdrawn},
    order::Ranked,
    outage::WhenStateIsLost,
    space::SpaceBy,
};

/// What is fixed for the life of a shard.
#[derive(Clone, Debug)]
pub struct Identity {
    /// Its name.
    pub shard: ShardId,
    /// What people see of it.
    pub label: Label,
    /// For how long the state holds it for alive after a step.
    pub lease: Micros,
    /// For how long a job may wait to get its ticket with the next ask, if the queue is as fast.
    pub linger: Duration,
    /// What becomes of tickets that miss their slots.
    pub late: Late,
    /// What keeps the interval.
    pub space_by: SpaceBy,
    /// What it does without the state.
    pub when_lost: WhenStateIsLost,
}

/// A shard's own line. Its parts are open, so that a proof can take it apart; it is changed by its methods.
#[derive(Clone, Debug)]
pub struct Line<J, C = (), A = ()> {
    /// What never changes.
    pub identity: Identity,
    /// The state's clock.
    pub clock: StateClock,
    /// What was said to the state and heard of it.
    pub contact: Contact,
    /// The jobs that have not started.
    pub backlog: Backlog<J, C>,
    /// The tickets, with slots and without.
    pub hand: Hand,
    /// The jobs that run.
    pub running: HashMap<JobId, Option<A>, BuildHasherDefault<IdHasher>>,
    /// What is needed without the state.
    pub alone: Alone,
}

impl<J, C, A> Line<J, C, A> {
    /// An empty line.
    pub fn new(identity: Identity, now: Instant) -> Self {
        Self {
            identity,
            clock: StateClock::new(now),
            contact: Contact::new(now),
            backlog: Backlog::default(),
            hand: Hand::default(),
            running: HashMap::default(),
            alone: Alone::default(),
        }
    }

    /// Puts a job at the end, to get its ticket with a step; behind a gate, if it is a joint one.
    pub fn arrive(&mut self, job: Waiting<J>, caller: C, since: Instant, gate: Option<Gate>) -> JobId {
        self.backlog.arrive(|id| Arriving { id, job, caller, since }, gate)
    }

    /// Takes a job out that has not started; its place is given up.
    pub fn withdraw(&mut self, id: JobId) -> Option<Withdrawn<J, C>> {
        let withdrawn = self.backlog.withdraw(id)?;
        self.trim();
        Some(withdrawn)
    }

    /// The same for all jobs of a group.
    pub fn withdraw_group(&mut self, group: GroupId) -> Vec<Withdrawn<J, C>> {
        self.backlog.index.group(group).into_iter().filter_map(|id| self.withdraw(id)).collect()
    }

    /// The same for every job: those without a ticket, and those with one.
    pub fn withdraw_all(&mut self) -> (Vec<Arriving<J, C>>, Ranked<J>) {
        let withdrawn = self.backlog.withdraw_all();
        self.hand.retake = 0;
        self.trim();
        withdrawn
    }

    /// Drops the highest tickets until there are no more than jobs.
    pub(crate) fn trim(&mut self) {
        if self.hand.trim(self.backlog.with_ticket()) {
            self.contact.count_again();
        }
    }

    /// Whether nothing waits or runs that the state should know of.
    pub fn is_quiet(&self) -> bool {
        self.backlog.is_empty() && self.running.is_empty() && self.hand.grants.is_empty()
    }

    /// Whether there is something to ask the state.
    pub fn has_questions(&self) -> bool {
        !self.hand.tickets.is_empty() || self.backlog.without_ticket() > 0 || self.backlog.taking.is_some()
    }

    /// Takes in the reply to a change. For how long it now keeps to its share, if it may have run alone.
    pub fn learn(&mut self, changed: &Changed, now: Instant) -> Option<Duration> {
        self.contact.learn(changed.memory);
        self.contact.heard = now;
        self.rejoin(now)
    }

    /// What is known of the record, if that was heard no longer ago than `fresh`; or is all there is to know.
    pub fn known(&self, now: Instant, fresh: Duration) -> Option<Memory> {
        let is_fresh = |at: Instant| now.saturating_duration_since(at) < fresh;
        let looked = self.contact.looked.filter(|(at, _)| is_fresh(*at)).map(|(_, seen)| seen);
        let known = is_fresh(self.contact.heard) || self.contact.failing.is_some();
        known.then_some(self.contact.memory).or(looked)
    }

    /// Takes in what the record showed when it was read. What is known of it then.
    pub fn look(&mut self, snapshot: &Snapshot, sent: Instant, received: Instant) -> Memory {
        let alive = snapshot.record.shards.iter().filter(|(_, presence)| presence.expires_at > snapshot.at);
        let waiting = alive.filter(|(id, presence)| presence.head.is_some() && **id != self.identity.shard);
        let others = u32::try_from(waiting.count()).unwrap_or(u32::MAX);
        let shards = others.saturating_add(u32::from(self.contact.present));
        let seen = Memory { shards, ..Memory::of(&snapshot.record) };
        self.clock.observe(snapshot.at, sent, received);
        self.contact.looked = Some((sent, seen));
        seen
    }
}
