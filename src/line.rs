//! A shard's own line: its jobs, the tickets and grants it holds, and what runs. No I/O, no clock, no lock.
//!
//! Tickets belong to the shard, not to a job: when a slot comes, the first waiting job runs. `talk.rs` turns the
//! line into steps and takes in the replies.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, VecDeque},
    hash::{BuildHasherDefault, Hasher},
    time::Duration,
};

use futures::{channel::oneshot, future::AbortHandle};
use interval_queue_contract::{Label, Late, Memory, Micros, ShardId, Ticket};
use tokio::time::Instant;

use crate::{
    alone::Alone, clock::StateClock, error::Error, outage::WhenStateIsLost, shard::Running, talk::Failing,
};

/// Names a job within its shard; rises in the order of adding.
pub(crate) type JobId = u64;

/// Spreads ids, which nobody outside chooses, by Fibonacci hashing (Knuth, The Art of Computer Programming, 6.4).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct IdHasher(u64);

impl Hasher for IdHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(self.0 ^ u64::from(*byte)));
    }

    fn write_u64(&mut self, id: JobId) {
        self.0 = id.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// What a waiting job does when its slot comes.
pub(crate) trait Start: Send {
    /// Starts without waiting, and tells how to abort it if that can be told; or gives the place back because nobody wants
    /// the job any more.
    fn start(self: Box<Self>, place: Running) -> Result<Option<AbortHandle>, Running>;
}

/// A job that has not started.
pub(crate) struct Waiting {
    pub(crate) weight: u32,
    pub(crate) start: Box<dyn Start>,
}

/// A job that has no ticket yet.
pub(crate) struct Arriving {
    pub(crate) id: JobId,
    pub(crate) job: Waiting,
    pub(crate) taken: oneshot::Sender<Result<Ticket, Error>>,
    /// When it came.
    pub(crate) since: Instant,
}

/// Jobs whose tickets are being taken, under one request number until that has succeeded.
pub(crate) struct Taking {
    pub(crate) request: u64,
    pub(crate) count: u32,
    /// How many of them replace tickets that were given up as late.
    pub(crate) retaken: u32,
    pub(crate) batch: VecDeque<Arriving>,
}

/// A ticket that may start at its slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Granted {
    pub(crate) ticket: Ticket,
    pub(crate) slot: Instant,
    pub(crate) weight: u32,
}

/// A job that starts now.
pub(crate) struct Starting {
    pub(crate) id: JobId,
    pub(crate) job: Waiting,
    /// None: it starts alone.
    pub(crate) grant: Option<Granted>,
    /// To be told that it starts, if it has no ticket yet.
    pub(crate) taken: Option<oneshot::Sender<Result<Ticket, Error>>>,
}

/// A job that has started.
pub(crate) struct Started {
    pub(crate) id: JobId,
    pub(crate) at: Instant,
    pub(crate) weight: u32,
    pub(crate) abort: Option<AbortHandle>,
}

/// What is fixed for the life of a shard.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    pub(crate) shard: ShardId,
    pub(crate) label: Label,
    pub(crate) lease: Micros,
    pub(crate) linger: Duration,
    pub(crate) late: Late,
    pub(crate) when_lost: WhenStateIsLost,
}

/// A start this much later than its slot is given up: the least of it.
pub(crate) const MIN_TOLERANCE: Duration = Duration::from_millis(10);

pub(crate) struct Line {
    pub(crate) identity: Identity,
    pub(crate) clock: StateClock,
    pub(crate) memory: Memory,
    next_id: JobId,

    pub(crate) arriving: VecDeque<Arriving>,
    pub(crate) taking: Option<Taking>,
    pub(crate) waiting: BTreeMap<JobId, Waiting>,
    pub(crate) tickets: BTreeSet<Ticket>,
    pub(crate) grants: VecDeque<Granted>,
    pub(crate) running: HashMap<JobId, Option<AbortHandle>, BuildHasherDefault<IdHasher>>,
    /// Jobs between two attempts.
    pub(crate) backing_off: usize,

    /// Tickets to take again, because theirs were given up as late.
    pub(crate) retake: u32,
    /// The highest ticket dropped since the state was last told.
    pub(crate) given_up: Option<Ticket>,
    /// Whether the state waits to hear how many jobs run.
    pub(crate) report: bool,
    /// Whether the record knows this shard.
    pub(crate) present: bool,
    /// The number of the last step, and of the last one that was answered or failed.
    pub(crate) sequence: u64,
    pub(crate) answered: u64,
    pub(crate) request: u64,
    /// Whether something happened since the last step was made that its reply cannot know: ask again after it.
    pub(crate) ask_again: bool,
    /// When to ask for the next slot; none: when woken.
    pub(crate) ask_at: Option<Instant>,
    pub(crate) last_step: Instant,
    /// When a job last started.
    pub(crate) started_at: Option<Instant>,
    pub(crate) failing: Option<Failing>,
    pub(crate) alone: Alone,
    /// Whether a grant was given up as too late since the last step was made.
    pub(crate) overran: bool,
    /// How many steps in a row brought grants that were given up so.
    pub(crate) overruns: u32,
    /// How late a start may be. The same for all grants that are in hand: a stop makes many of them late at once.
    pub(crate) tolerance: Duration,

    /// Whether a driver task is alive.
    pub(crate) driving: bool,
    /// Whether the driver ended with its runtime instead of by itself.
    pub(crate) orphaned: bool,
    pub(crate) closed: bool,
    pub(crate) shut_down: bool,
}

impl Line {
    pub(crate) fn new(identity: Identity, now: Instant) -> Self {
        Self {
            identity,
            clock: StateClock::new(now),
            memory: Memory::default(),
            next_id: 0,
            arriving: VecDeque::new(),
            taking: None,
            waiting: BTreeMap::new(),
            tickets: BTreeSet::new(),
            grants: VecDeque::new(),
            running: HashMap::default(),
            backing_off: 0,
            retake: 0,
            given_up: None,
            report: false,
            present: false,
            sequence: 0,
            answered: 0,
            request: 0,
            ask_again: false,
            ask_at: None,
            last_step: now,
            started_at: None,
            failing: None,
            alone: Alone::default(),
            overran: false,
            overruns: 0,
            tolerance: MIN_TOLERANCE,
            driving: false,
            orphaned: false,
            closed: false,
            shut_down: false,
        }
    }

    /// Puts a job at the end, to get its ticket with a step.
    pub(crate) fn arrive(
        &mut self,
        job: Waiting,
        taken: oneshot::Sender<Result<Ticket, Error>>,
        since: Instant,
    ) -> JobId {
        self.next_id += 1;
        self.arriving.push_back(Arriving { id: self.next_id, job, taken, since });
        self.next_id
    }

    /// Takes a job out that has not started; its place is given up.
    pub(crate) fn withdraw(&mut self, id: JobId) -> Option<Waiting> {
        if let Some(job) = self.waiting.remove(&id) {
            self.trim();
            return Some(job);
        }
        let batch = self.taking.iter_mut().map(|taking| &mut taking.batch);
        for arriving in batch.chain([&mut self.arriving]) {
            if let Ok(index) = arriving.binary_search_by_key(&id, |arriving| arriving.id) {
                return arriving.remove(index).map(|arriving| arriving.job);
            }
        }
        None
    }

    /// Takes out every job that has not started: those without a ticket, and those with one.
    pub(crate) fn withdraw_all(&mut self) -> (Vec<Arriving>, Vec<Waiting>) {
        let taking = self.taking.iter_mut().flat_map(|taking| taking.batch.drain(..));
        let arriving = self.arriving.drain(..).chain(taking).collect();
        let waiting = std::mem::take(&mut self.waiting).into_values().collect();
        self.retake = 0;
        self.trim();
        (arriving, waiting)
    }

    /// Drops the highest tickets until there are no more than jobs.
    pub(crate) fn trim(&mut self) {
        while self.tickets.len() + self.grants.len() > self.waiting.len() {
            if let Some(dropped) = self.tickets.pop_last() {
                self.given_up = self.given_up.max(Some(dropped));
            } else {
                self.grants.pop_back();
                self.report |= self.memory.max_running.is_some();
            }
        }
    }

    /// The next job whose slot has come, or that starts alone. A grant that is used much too late is given up and asked
    /// for again.
    pub(crate) fn next_start(&mut self, now: Instant) -> Option<Starting> {
        while let Some(grant) = self.grants.front().copied().filter(|grant| grant.slot <= now) {
            self.grants.pop_front();
            if now.saturating_duration_since(grant.slot) > self.tolerance {
                self.overran = true;
                self.keep(grant.ticket, now);
            } else if let Some(starting) = self.fill(grant, now) {
                self.overruns = 0;
                return Some(starting);
            }
        }
        self.next_alone(now)
    }

    /// The first waiting job for a slot that has come, counted as running.
    pub(crate) fn fill(&mut self, grant: Granted, now: Instant) -> Option<Starting> {
        let Some(first) = self.waiting.first_entry() else {
            self.report |= self.memory.max_running.is_some();
            return None;
        };
        if first.get().weight > grant.weight {
            // The other grants in hand stand for the wrong jobs, too: if they were kept, each new one would be asked for
            // the job behind this one, and this one would wait for ever.
            let others = std::mem::take(&mut self.grants);
            self.tickets.extend(others.iter().map(|grant| grant.ticket));
            self.keep(grant.ticket, now);
            return None;
        }
        let (id, job) = first.remove_entry();
        self.running.insert(id, None);
        Some(Starting { id, job, grant: Some(grant), taken: None })
    }

    fn keep(&mut self, ticket: Ticket, now: Instant) {
        self.tickets.insert(ticket);
        self.ask_at = Some(now);
        self.ask_again = true;
        self.trim();
    }

    /// Takes in that a job started.
    pub(crate) fn started(&mut self, started: Started) {
        self.started_at = Some(started.at);
        self.alone.note_start(started.at, started.weight);
        // It may have ended already.
        if let (Some(running), Some(handle)) = (self.running.get_mut(&started.id), started.abort) {
            *running = Some(handle);
        }
    }

    /// A job that was counted as running runs no more. Whether the driver has to know.
    pub(crate) fn finish(&mut self, id: JobId) -> bool {
        self.running.remove(&id);
        self.report |= self.memory.max_running.is_some();
        self.report || self.running.is_empty()
    }

    /// The ticket that a waiting job will run with as things stand.
    pub(crate) fn ticket_of(&self, id: JobId) -> Option<Ticket> {
        let place = self.waiting.range(..id).count();
        self.waiting.contains_key(&id).then_some(())?;
        let granted = self.grants.iter().map(|grant| grant.ticket);
        granted.chain(self.tickets.iter().copied()).nth(place)
    }

    /// How many jobs have not started.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len() + self.arriving.len() + self.taking.as_ref().map_or(0, |taking| taking.batch.len())
    }

    /// Whether nothing waits or runs that the state should know of.
    pub(crate) fn is_quiet(&self) -> bool {
        self.waiting() == 0 && self.running.is_empty() && self.grants.is_empty()
    }

    /// Whether nothing waits, runs or is to be tried again.
    pub(crate) fn is_idle(&self) -> bool {
        self.is_quiet() && self.backing_off == 0
    }

    /// Whether there is something to ask the state.
    pub(crate) fn has_questions(&self) -> bool {
        !self.tickets.is_empty() || !self.arriving.is_empty() || self.taking.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{clock, talk::Next};

    struct Nothing;

    impl Start for Nothing {
        fn start(self: Box<Self>, place: Running) -> Result<Option<AbortHandle>, Running> {
            drop(place);
            Ok(None)
        }
    }

    #[test]
    fn a_heavy_job_is_asked_for_although_lighter_grants_are_in_hand() {
        let now = clock::now();
        let identity = Identity {
            shard: ShardId::new("a").unwrap(),
            label: Label::new("a").unwrap(),
            lease: Micros::from_millis(5_000),
            linger: Duration::ZERO,
            late: Late::NextSlot,
            when_lost: crate::WhenStateIsLost::Wait,
        };
        let mut line = Line::new(identity, now);
        line.memory.interval = Micros::from_millis(5);
        for (id, weight) in [(1, 3), (2, 1), (3, 1)] {
            line.waiting.insert(id, Waiting { weight, start: Box::new(Nothing) });
        }
        // The grant of the heavy one was given up as too late; those of the others were not.
        line.tickets.insert(Ticket::new(1));
        line.grants.extend([2, 3].map(|n| Granted { ticket: Ticket::new(n), slot: now, weight: 1 }));
        assert!(line.next_start(now).is_none());
        let Next::Send(step) = line.next(now, Micros::from_millis(20), false) else {
            panic!("nothing is asked")
        };
        let asked: Vec<_> = step.ask.iter().map(|ask| (ask.ticket.get(), ask.weight)).collect();
        assert_eq!(asked, [(1, 3), (2, 1), (3, 1)]);
    }
}
