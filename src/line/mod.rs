//! A shard's own line: its jobs, the tickets and grants it holds, and what runs. No I/O, no clock, no lock,
//! and no way out: nothing in here knows anything of the crate around it. What a job is, it is not told
//! ([`Jobs`]).
//!
//! In go jobs that [arrive](Line::arrive) or are [withdrawn](Line::withdraw), [replies](Line::absorb) and
//! [failures](Line::fail) of the state, the [ends](Line::finish) of jobs, and with all of it the time. Out
//! come what is [due](Line::next_due) to start, and what the driver does [next](Line::next): a step to send,
//! or until when to sleep.
//!
//! Tickets belong to the shard, not to a job: when a slot comes, the first waiting job runs. `waiting.rs`
//! says which is the first. `talk.rs` turns the line into steps and takes in the replies.

pub(crate) mod alone;
pub(crate) mod clock;
pub(crate) mod gate;
mod grant;
pub(crate) mod lost;
pub(crate) mod outage;
mod quote;
pub(crate) mod talk;
pub(crate) mod waiting;

use std::{
    collections::{BTreeSet, HashMap, VecDeque},
    hash::{BuildHasherDefault, Hasher},
    time::Duration,
};

use interval_queue_contract::{Label, Late, Memory, Micros, ShardId, Ticket};
use tokio::time::Instant;

pub(crate) use self::grant::{Granted, MIN_TOLERANCE, Tolerance};
use self::{
    alone::Alone,
    clock::StateClock,
    gate::Gated,
    lost::{LostBecause, LostSlot},
    outage::WhenStateIsLost,
    talk::Failing,
    waiting::{Batch, Index, Ranked, Waiting},
};

/// What jobs are to those above the line, which carries them and looks at none.
pub(crate) trait Jobs {
    /// What is to be done when the slot comes.
    type Job;
    /// Waits for the ticket of a job.
    type Caller;
    /// Ends a running job.
    type Abort;
}

/// Names jobs that are withdrawn together.
pub(crate) type GroupId = u64;

/// Names a job within its shard; rises in the order of adding.
pub(crate) type JobId = u64;

/// Spreads ids, which nobody outside chooses, by Fibonacci hashing (Knuth, The Art of Computer Programming,
/// 6.4).
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

/// A job that has no ticket yet.
pub(crate) struct Arriving<J: Jobs> {
    pub(crate) id: JobId,
    pub(crate) job: Waiting<J::Job>,
    pub(crate) caller: J::Caller,
    /// When it came.
    pub(crate) since: Instant,
}

/// Jobs whose tickets are being taken, under one request number until that has succeeded.
pub(crate) struct Taking<J: Jobs> {
    pub(crate) request: u64,
    pub(crate) count: u32,
    /// How many of them replace tickets that were given up as late.
    pub(crate) retaken: u32,
    pub(crate) batch: VecDeque<Arriving<J>>,
}

/// What there is to do with a job now.
pub(crate) enum Due<J: Jobs> {
    Start(Starting<J>),
    /// It is too late for it.
    GiveUp(Withdrawn<J>),
}

/// A job that starts now.
pub(crate) struct Starting<J: Jobs> {
    pub(crate) id: JobId,
    pub(crate) job: Waiting<J::Job>,
    /// None if it starts alone.
    pub(crate) grant: Option<Granted>,
    /// To be told that it starts, if it has no ticket yet.
    pub(crate) caller: Option<J::Caller>,
}

/// A job that was taken out of the line.
pub(crate) struct Withdrawn<J: Jobs> {
    pub(crate) job: Waiting<J::Job>,
    /// The caller that waits for its ticket, if it has none yet.
    pub(crate) caller: Option<J::Caller>,
}

/// A job that has started.
pub(crate) struct Started<J: Jobs> {
    pub(crate) id: JobId,
    pub(crate) at: Instant,
    pub(crate) weight: u32,
    pub(crate) abort: Option<J::Abort>,
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

pub(crate) struct Line<J: Jobs> {
    pub(crate) identity: Identity,
    pub(crate) clock: StateClock,
    pub(crate) memory: Memory,
    next_id: JobId,

    pub(crate) arriving: VecDeque<Arriving<J>>,
    pub(crate) taking: Option<Taking<J>>,
    /// Whether the jobs without a ticket may be of several priorities.
    arriving_is_ranked: bool,
    /// Whether a job has arrived that does not linger.
    pub(crate) hurry: bool,
    pub(crate) waiting: Ranked<J::Job>,
    /// Jobs that are not to start yet.
    pub(crate) gated: Gated<J::Job>,
    pub(crate) index: Index,
    pub(crate) tickets: BTreeSet<Ticket>,
    pub(crate) grants: VecDeque<Granted>,
    pub(crate) running: HashMap<JobId, Option<J::Abort>, BuildHasherDefault<IdHasher>>,
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
    /// Whether something happened since the last step was made that its reply cannot know: ask again after
    /// it.
    pub(crate) ask_again: bool,
    /// When to ask for the next slot; none: when woken.
    pub(crate) ask_at: Option<Instant>,
    pub(crate) last_step: Instant,
    /// When the state last told how it stands.
    pub(crate) heard: Instant,
    /// The lowest ticket that the state was told of in the last step.
    pub(crate) told: Option<Ticket>,
    /// What the record showed when it was last read, and when.
    pub(crate) looked: Option<(Instant, Memory)>,
    /// When a job last started.
    pub(crate) started_at: Option<Instant>,
    pub(crate) failing: Option<Failing>,
    pub(crate) alone: Alone,
    /// Whether a grant was given up as too late since the last step was made.
    pub(crate) overran: bool,
    /// How many steps in a row brought grants that were given up so.
    pub(crate) overruns: u32,
    /// How late a start may be. The same for all grants that are in hand: a stop makes many of them late at
    /// once.
    pub(crate) tolerance: Tolerance,
    /// Slots in which nothing started, for those who look at the line.
    pub(crate) lost: Vec<LostSlot>,

    /// Whether a driver task is alive.
    pub(crate) driving: bool,
    /// Whether the driver ended with its runtime instead of by itself.
    pub(crate) orphaned: bool,
    pub(crate) closed: bool,
    pub(crate) shut_down: bool,
}

impl<J: Jobs> Line<J> {
    pub(crate) fn new(identity: Identity, now: Instant) -> Self {
        Self {
            identity,
            clock: StateClock::new(now),
            memory: Memory::default(),
            next_id: 0,
            arriving: VecDeque::new(),
            taking: None,
            arriving_is_ranked: false,
            hurry: false,
            waiting: Ranked::default(),
            gated: Gated::default(),
            index: Index::default(),
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
            heard: now,
            looked: None,
            told: None,
            started_at: None,
            failing: None,
            alone: Alone::default(),
            overran: false,
            overruns: 0,
            tolerance: Tolerance::default(),
            lost: Vec::new(),
            driving: false,
            orphaned: false,
            closed: false,
            shut_down: false,
        }
    }

    /// Puts a job at the end, to get its ticket with a step.
    pub(crate) fn arrive(&mut self, job: Waiting<J::Job>, caller: J::Caller, since: Instant) -> JobId {
        self.next_id += 1;
        self.index.note(self.next_id, &job);
        self.hurry |= job.priority() > 0 || job.deadline().is_some();
        self.arriving_is_ranked &= self.without_ticket() > 0;
        self.arriving_is_ranked |= job.priority() != 0;
        self.arriving.push_back(Arriving { id: self.next_id, job, caller, since });
        self.next_id
    }

    /// Takes a job out that has not started; its place is given up.
    pub(crate) fn withdraw(&mut self, id: JobId) -> Option<Withdrawn<J>> {
        let withdrawn = if let Some(job) = self.waiting.remove(id).or_else(|| self.gated.remove(id)) {
            self.trim();
            Withdrawn { job, caller: None }
        } else {
            let Arriving { job, caller, .. } = self.take_arriving(id)?;
            self.gated.forget(id);
            Withdrawn { job, caller: Some(caller) }
        };
        self.index.forget(id, &withdrawn.job);
        Some(withdrawn)
    }

    /// Takes a job out that has no ticket.
    fn take_arriving(&mut self, id: JobId) -> Option<Arriving<J>> {
        let batch = self.taking.iter_mut().map(|taking| &mut taking.batch);
        let mut batches = batch.chain([&mut self.arriving]);
        batches.find_map(|batch| {
            let index = batch.binary_search_by_key(&id, |arriving| arriving.id).ok()?;
            batch.remove(index)
        })
    }

    /// The same for all jobs of a group.
    pub(crate) fn withdraw_group(&mut self, group: GroupId) -> Vec<Withdrawn<J>> {
        self.index.group(group).into_iter().filter_map(|id| self.withdraw(id)).collect()
    }

    /// The same for the jobs of a batch, unless one of them has started.
    pub(crate) fn withdraw_batch(&mut self, ids: &[JobId], batch: &Batch) -> Option<Vec<Withdrawn<J>>> {
        let untouched = !batch.has_begun();
        untouched.then(|| ids.iter().filter_map(|id| self.withdraw(*id)).collect())
    }

    /// The same for every job: those without a ticket, and those with one.
    pub(crate) fn withdraw_all(&mut self) -> (Vec<Arriving<J>>, Ranked<J::Job>) {
        let taking = self.taking.iter_mut().flat_map(|taking| taking.batch.drain(..));
        let arriving = self.arriving.drain(..).chain(taking).collect();
        let mut waiting = std::mem::take(&mut self.waiting);
        std::mem::take(&mut self.gated).move_to(&mut waiting);
        self.index = Index::default();
        self.retake = 0;
        self.trim();
        (arriving, waiting)
    }

    /// Changes the priority of a job. False if it has started or was cancelled.
    pub(crate) fn set_priority(&mut self, id: JobId, priority: i32) -> bool {
        if self.waiting.set_priority(id, priority) {
            return true;
        }
        let batch = self.taking.iter_mut().map(|taking| &mut taking.batch);
        let mut batches = batch.chain([&mut self.arriving]);
        let arriving = batches.find_map(|batch| {
            let index = batch.binary_search_by_key(&id, |arriving| arriving.id).ok()?;
            batch.get_mut(index)
        });
        let found = arriving.map(|arriving| arriving.job.set_priority(priority)).is_some();
        self.arriving_is_ranked |= found && priority != 0;
        found
    }

    /// Drops the highest tickets until there are no more than jobs.
    pub(crate) fn trim(&mut self) {
        while self.tickets.len() + self.grants.len() > self.waiting.len() + self.gated.len() {
            if let Some(dropped) = self.tickets.pop_last() {
                self.given_up = self.given_up.max(Some(dropped));
            } else {
                let unused = self.grants.pop_back();
                unused.inspect(|grant| self.lose_slot(grant.ticket, LostBecause::Unwanted));
                self.report |= self.memory.max_running.is_some();
            }
        }
    }

    /// The next job whose slot has come, that starts alone, or that is too late. A grant that is used much
    /// too late is given up and asked for again.
    pub(crate) fn next_due(&mut self, now: Instant) -> Option<Due<J>> {
        while let Some(grant) = self.usable_grant(now) {
            // In time is who has a slot in time, however late the timer was. First the others, so that they
            // take no slot.
            if let Some(overdue) = self.index.overdue(grant.slot) {
                return self.withdraw(overdue).map(Due::GiveUp);
            }
            self.grants.pop_front();
            if self.tolerance.is_exceeded(&grant, now) {
                self.overran = true;
                self.lose_slot(grant.ticket, LostBecause::LateStart);
                self.keep(grant.ticket, now);
            } else if let Some(starting) = self.fill(grant, now) {
                self.overruns = 0;
                return Some(Due::Start(starting));
            }
        }
        if let Some(overdue) = self.index.overdue(now) {
            return self.withdraw(overdue).map(Due::GiveUp);
        }
        self.next_alone(now).map(Due::Start)
    }

    /// The first waiting job for a slot that has come, counted as running.
    pub(crate) fn fill(&mut self, grant: Granted, now: Instant) -> Option<Starting<J>> {
        let Some(first) = self.waiting.first() else {
            self.lose_slot(grant.ticket, LostBecause::Unwanted);
            self.keep_for_gated(grant.ticket);
            self.report |= self.memory.max_running.is_some();
            return None;
        };
        if first.weight > grant.weight {
            // The other grants in hand stand for the wrong jobs, too: if they were kept, each new one would
            // be asked for the job behind this one, and this one would wait for ever.
            let others = std::mem::take(&mut self.grants);
            self.tickets.extend(others.iter().map(|grant| grant.ticket));
            others.iter().chain([&grant]).for_each(|lost| self.lose_slot(lost.ticket, LostBecause::TooLight));
            self.keep(grant.ticket, now);
            return None;
        }
        let (id, job) = self.waiting.pop_first()?;
        self.start(id, &job);
        Some(Starting { id, job, grant: Some(grant), caller: None })
    }

    /// Counts a job as running that left the line.
    pub(crate) fn start(&mut self, id: JobId, job: &Waiting<J::Job>) {
        self.index.forget(id, job);
        job.note_start();
        self.running.insert(id, None);
    }

    pub(crate) fn lose_slot(&mut self, ticket: Ticket, because: LostBecause) {
        self.lost.push(LostSlot { ticket, because });
    }

    fn keep(&mut self, ticket: Ticket, now: Instant) {
        self.tickets.insert(ticket);
        self.ask_at = Some(now);
        self.ask_again = true;
        self.trim();
    }

    /// Takes in that a job started.
    pub(crate) fn started(&mut self, started: Started<J>) {
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

    /// How many jobs have not started.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len() + self.gated.len() + self.without_ticket()
    }

    pub(crate) fn without_ticket(&self) -> usize {
        self.arriving.len() + self.taking.as_ref().map_or(0, |taking| taking.batch.len())
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
    use super::{talk::Next, waiting::Terms};

    struct Nothing;

    impl Jobs for Nothing {
        type Job = ();
        type Caller = ();
        type Abort = ();
    }

    #[test]
    fn a_heavy_job_is_asked_for_although_lighter_grants_are_in_hand() {
        let now = crate::clock::now();
        let identity = Identity {
            shard: ShardId::new("a").unwrap(),
            label: Label::new("a").unwrap(),
            lease: Micros::from_millis(5_000),
            linger: Duration::ZERO,
            late: Late::NextSlot,
            when_lost: WhenStateIsLost::Wait,
        };
        let mut line = Line::<Nothing>::new(identity, now);
        line.memory.interval = Micros::from_millis(5);
        for (id, weight) in [(1, 3), (2, 1), (3, 1)] {
            let terms = Terms { weight, priority: 0, deadline: None, group: None };
            line.waiting.insert(id, Waiting::new(terms, ()));
        }
        // The grant of the heavy one was given up as too late; those of the others were not.
        line.tickets.insert(Ticket::new(1));
        line.grants.extend([2, 3].map(|n| Granted {
            ticket: Ticket::new(n),
            slot: now,
            heard: now,
            weight: 1,
        }));
        assert!(line.next_due(now).is_none());
        let Next::Send(step) = line.next(now, Micros::from_millis(20), false) else {
            panic!("nothing is asked")
        };
        let asked: Vec<_> = step.ask.iter().map(|ask| (ask.ticket.get(), ask.weight)).collect();
        assert_eq!(asked, [(1, 3), (2, 1), (3, 1)]);
    }
}
