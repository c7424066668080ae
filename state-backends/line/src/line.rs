//! A shard's line: jobs, tickets, and the connection to the store.

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
    connection::Connection,
    held_tickets::HeldTickets,
    jobs::{Arriving, Gate, GroupId, IdHasher, JobId, Waiting, Withdrawn},
    order::Ranked,
    outage::WhenStateIsLost,
    space::SpaceBy,
};

/// Constants of a shard.
#[derive(Clone, Debug)]
pub struct Identity {
    /// Its id.
    pub shard: ShardId,
    /// Label for people.
    pub label: Label,
    /// The shard counts as alive for this long after a step.
    pub lease: Micros,
    /// How long a job may wait to take its ticket with the next request, unless the interval is
    /// longer.
    pub linger: Duration,
    /// Handling of missed slots.
    pub late: Late,
    /// Whether slots or starts keep the interval.
    pub space_by: SpaceBy,
    /// Behaviour while the store is lost.
    pub when_lost: WhenStateIsLost,
}

/// A shard's line. The proofs read its fields; change them through its methods.
#[derive(Clone, Debug)]
pub struct Line<J, C = (), A = ()> {
    /// Constants of the shard.
    pub identity: Identity,
    /// Offset of the store's clock.
    pub clock: StateClock,
    /// Connection state.
    pub connection: Connection,
    /// Jobs that have not started.
    pub backlog: Backlog<J, C>,
    /// Tickets, with slots and without.
    pub held: HeldTickets,
    /// Running jobs and their abort handles.
    pub running: HashMap<JobId, Option<A>, BuildHasherDefault<IdHasher>>,
    /// State for an outage of the store.
    pub alone: Alone,
}

impl<J, C, A> Line<J, C, A> {
    /// An empty line.
    pub fn new(identity: Identity, now: Instant) -> Self {
        Self {
            identity,
            clock: StateClock::new(now),
            connection: Connection::new(now),
            backlog: Backlog::default(),
            held: HeldTickets::default(),
            running: HashMap::default(),
            alone: Alone::default(),
        }
    }

    /// Adds a job, which takes its ticket with a step. `gate`: of a joint job.
    pub fn arrive(&mut self, job: Waiting<J>, caller: C, since: Instant, gate: Option<Gate>) -> JobId {
        self.backlog.arrive(|id| Arriving { id, job, caller, since }, gate)
    }

    /// Removes a job that has not started. Its place is given up.
    pub fn withdraw(&mut self, id: JobId) -> Option<Withdrawn<J, C>> {
        let withdrawn = self.backlog.withdraw(id)?;
        self.trim();
        Some(withdrawn)
    }

    /// Removes the jobs of a group that have not started.
    pub fn withdraw_group(&mut self, group: GroupId) -> Vec<Withdrawn<J, C>> {
        self.backlog.index.group(group).into_iter().filter_map(|id| self.withdraw(id)).collect()
    }

    /// Removes all jobs that have not started: without a ticket, and with one.
    pub fn withdraw_all(&mut self) -> (Vec<Arriving<J, C>>, Ranked<J>) {
        let withdrawn = self.backlog.withdraw_all();
        self.held.retake = 0;
        self.trim();
        withdrawn
    }

    /// Drops the highest tickets beyond the number of jobs.
    pub(crate) fn trim(&mut self) {
        if self.held.trim(self.backlog.with_ticket()) {
            self.connection.count_again();
        }
    }

    /// Whether no job waits or runs, and no grant is held.
    pub fn is_quiet(&self) -> bool {
        self.backlog.is_empty() && self.running.is_empty() && self.held.grants.is_empty()
    }

    /// Whether there are tickets to take or to request slots for.
    pub fn has_requests(&self) -> bool {
        !self.held.tickets.is_empty() || self.backlog.without_ticket() > 0 || self.backlog.taking.is_some()
    }

    /// Takes in the reply to a change. Returns how long the shard keeps to its share, if it may
    /// have run alone.
    pub fn learn(&mut self, changed: &Changed, now: Instant) -> Option<Duration> {
        self.connection.learn(changed.memory);
        self.connection.last_reply = now;
        self.rejoin(now)
    }

    /// The memory of the record, if received within `fresh` or the store fails; otherwise a read as
    /// recent.
    pub fn recent_memory(&self, now: Instant, fresh: Duration) -> Option<Memory> {
        let is_fresh = |at: Instant| now.saturating_duration_since(at) < fresh;
        let read = self.connection.last_read.filter(|(at, _)| is_fresh(*at)).map(|(_, seen)| seen);
        let is_recent = is_fresh(self.connection.last_reply) || self.connection.failing.is_some();
        is_recent.then_some(self.connection.memory).or(read)
    }

    /// Takes in a read of the record. Returns its memory.
    pub fn observe(&mut self, snapshot: &Snapshot, sent: Instant, received: Instant) -> Memory {
        let alive = snapshot.record.shards.iter().filter(|(_, presence)| presence.expires_at > snapshot.at);
        let waiting = alive.filter(|(id, presence)| presence.head.is_some() && **id != self.identity.shard);
        let others = u32::try_from(waiting.count()).unwrap_or(u32::MAX);
        let shards = others.saturating_add(u32::from(self.connection.present));
        let seen = Memory { shards, ..Memory::of(&snapshot.record) };
        self.clock.observe(snapshot.at, sent, received);
        self.connection.last_read = Some((sent, seen));
        seen
    }
}
