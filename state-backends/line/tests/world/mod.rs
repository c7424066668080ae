//! A few shards, each a real line, on one record: requests and replies get lost, shards die, and the record and
//! its clock are tampered with.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use interval_queue_contract::{
    Change, Command, Label, Late, MAX_LEAD, MaxRunning, Memory, Micros, OnExisting, Rate, Rates, Reading,
    Record, Reply, ShardId, StateError, StateErrorKind, Step, Stepped, Ticket, WaitReason,
    judge::{self, Eras},
    rules,
};
use interval_queue_line::{Due, Identity, Line, Next, SpaceBy, Started, Terms, Waiting, WhenStateIsLost};
use proptest::prelude::*;

pub(crate) const fn ms(millis: u64) -> Micros {
    Micros::from_millis(millis)
}

/// One thing that happens.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    Pass(u64),
    Work(Work),
    /// A command that was sent before arrives, again or only now.
    Arrive(usize),
    Crash(usize),
    /// A shard withdraws a job, one of those that wait.
    Cancel(usize, usize),
    /// The running jobs of a shard end.
    Finish(usize),
    Change(Change),
    /// The clock is stepped back.
    StepBack(u64),
    Loss(Loss),
}

/// What becomes of the record behind everyone's back.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Loss {
    Save,
    Forget,
    Rewind,
}

/// A shard adds jobs and does what is due.
#[derive(Clone, Debug)]
pub(crate) struct Work {
    shard: usize,
    jobs: u32,
    weight: u32,
    priority: i32,
    lead: Micros,
    is_woken: bool,
    fate: Fate,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    Fine,
    LoseRequest,
    LoseReply,
}

const SHARDS: usize = 4;
const INTERVALS: [Micros; 4] = [ms(1), ms(10), ms(100), ms(1000)];
/// When the histories begin, on the state's clock.
const T0: Micros = ms(1_000_000_000);

fn work() -> impl Strategy<Value = Event> {
    const LEADS: [Micros; 5] = [ms(0), ms(5), ms(50), ms(400), ms(1000)];
    let fate = prop_oneof![8 => Just(Fate::Fine), 1 => Just(Fate::LoseRequest), 1 => Just(Fate::LoseReply)];
    let jobs = prop_oneof![2 => Just(0), 2 => 1..4_u32];
    let weight = prop_oneof![6 => Just(1), 1 => 2..4_u32];
    let priority = prop_oneof![4 => Just(0), 1 => -1..2];
    let lead = prop::sample::select(&LEADS[..]);
    (0..SHARDS, jobs, weight, priority, lead, any::<bool>(), fate).prop_map(
        |(shard, jobs, weight, priority, lead, is_woken, fate)| {
            Event::Work(Work { shard, jobs, weight, priority, lead, is_woken, fate })
        },
    )
}

/// An interval, mostly with a burst, a quota beside it, or both.
pub(crate) fn rates() -> impl Strategy<Value = Rates> {
    let burst = prop::sample::select(vec![1_u32, 1, 2, 3, 8]);
    let quota = prop_oneof![2 => Just(None), 1 => prop::sample::select(vec![4_u32, 10, 20]).prop_map(Some)];
    (prop::sample::select(&INTERVALS[..]), burst, quota).prop_map(|(interval, burst, quota)| {
        let quota = quota.map(|burst| Rate { interval: interval * 3, burst });
        Rates::of([Rate { interval, burst }].into_iter().chain(quota)).unwrap()
    })
}

fn change() -> impl Strategy<Value = Event> {
    let set = |rates, max_running| Change::Set { rates, max_running };
    prop_oneof![
        1 => Just(Change::Pause),
        2 => Just(Change::Resume),
        1 => (0..3000_u64).prop_map(|hold| Change::Hold(ms(hold))),
        1 => rates().prop_map(move |rates| set(Some(rates), MaxRunning::Keep)),
        1 => (1..4_u32).prop_map(move |limit| set(None, MaxRunning::AtMost(limit))),
        1 => Just(set(None, MaxRunning::Unlimited)),
    ]
    .prop_map(Event::Change)
}

/// Time, work, trouble of shards and of the network, changes.
pub(crate) fn event() -> impl Strategy<Value = Event> {
    let shard = 0..SHARDS;
    prop_oneof![
        4 => (0..120_u64).prop_map(Event::Pass),
        1 => (0..6000_u64).prop_map(Event::Pass),
        16 => work(),
        1 => (0..1000_usize).prop_map(Event::Arrive),
        1 => (shard.clone(), 0..9_usize).prop_map(|(shard, job)| Event::Cancel(shard, job)),
        2 => shard.clone().prop_map(Event::Finish),
        1 => change(),
        1 => shard.prop_map(Event::Crash),
    ]
}

/// A slot that a shard was granted and heard of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    slot: Micros,
    weight: u32,
    /// Where in the history of rates it was granted.
    era: usize,
}

pub(crate) struct World {
    pub(crate) stored: Option<Record>,
    reading: Reading,
    /// True time, which is that of all shards; only the state's clock is ever stepped.
    now: Instant,
    lines: Vec<(Line<()>, Micros)>,
    pub(crate) slots: Vec<Slot>,
    /// All rates that were in force, in order.
    eras: Eras,
    /// Where in the history of rates each ticket was granted its last slot.
    granted_in: BTreeMap<(ShardId, Ticket), usize>,
    sent: Vec<Step>,
    saved: Option<Record>,
    names: usize,
    owners: BTreeMap<Ticket, ShardId>,
    /// How often the record was lost or rewound.
    pub(crate) losses: usize,
    /// The lead of all shards in parts of the interval, a hundred each, where it is the same for all.
    lead: Option<u64>,
}

impl World {
    pub(crate) fn new(rates: Rates) -> Self {
        #[allow(clippy::disallowed_methods, reason = "any instant does, time only goes on from it")]
        let now = Instant::now();
        let mut world = Self {
            stored: None,
            reading: Reading::of_clock(T0),
            now,
            lines: Vec::new(),
            slots: Vec::new(),
            eras: Eras::default(),
            granted_in: BTreeMap::new(),
            sent: Vec::new(),
            saved: None,
            names: 0,
            owners: BTreeMap::new(),
            losses: 0,
            lead: None,
        };
        world.eras.enter(rates);
        world.lines = (0..SHARDS).map(|_| (world.newcomer(), ms(0))).collect();
        world.saved.clone_from(&world.stored);
        world
    }

    /// The same with one lead for all shards, in hundredths of the interval: as far as it goes, slots are lost
    /// with the record.
    pub(crate) fn with_lead(rates: Rates, lead: u64) -> Self {
        Self { lead: Some(lead), ..Self::new(rates) }
    }

    fn newcomer(&mut self) -> Line<()> {
        self.names += 1;
        let identity = Identity {
            shard: ShardId::new(format!("s{}", self.names)).unwrap(),
            label: Label::default(),
            lease: [ms(100), ms(1000), ms(5000)][self.names % 3],
            linger: Duration::from_millis([0, 100][self.names % 2]),
            late: if self.names.is_multiple_of(4) { Late::Requeue } else { Late::NextSlot },
            space_by: if self.names.is_multiple_of(5) { SpaceBy::Starts } else { SpaceBy::Slots },
            when_lost: WhenStateIsLost::Wait,
        };
        let mut line = Line::new(identity, self.now);
        let on_existing = OnExisting::Keep;
        let open = Change::Open {
            rates: Rates::of(self.eras.rates(self.eras.last()).iter().copied()).ok(),
            max_running: MaxRunning::Keep,
            on_existing,
        };
        let opened = self.apply(&Command::Change(open, Memory::default())).unwrap().changed().unwrap();
        line.learn(&opened, self.now);
        line.clock.observe(opened.memory.at, self.now, self.now);
        line
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
        self.reading.now = self.reading.now + Micros::from_duration(time);
    }

    pub(crate) fn happen(&mut self, event: &Event) {
        match event {
            Event::Pass(millis) => self.pass(Duration::from_millis(*millis)),
            Event::StepBack(millis) => self.reading.now = self.reading.now - ms(*millis),
            Event::Work(work) => {
                let (line, lead) = &mut self.lines[work.shard];
                let interval = self.eras.rates(self.eras.last())[0].interval;
                *lead = self
                    .lead
                    .map_or(work.lead, |part| Micros::new(interval.get() * part / 100).min(MAX_LEAD));
                let Work { weight, priority, .. } = *work;
                let terms = Terms { weight, priority, deadline: None, group: None };
                for _ in 0..work.jobs {
                    line.arrive(Waiting::new(terms, ()), (), self.now, None);
                }
                if work.is_woken {
                    line.connection.request_now(self.now);
                }
                self.drive(work.shard, work.fate);
            }
            Event::Arrive(n) => {
                if !self.sent.is_empty() {
                    let step = self.sent[n % self.sent.len()].clone();
                    let _nobody_listens = self.apply(&Command::Step(step));
                }
            }
            Event::Crash(n) => self.lines[*n].0 = self.newcomer(),
            Event::Cancel(n, job) => {
                let line = &mut self.lines[*n].0;
                let ids: Vec<_> = (1..=line.backlog.last_id).rev().collect();
                ids.iter().skip(*job).find_map(|id| line.withdraw(*id));
            }
            Event::Finish(n) => self.finish(*n),
            Event::Change(change) => {
                let _refused_or_not = self.apply(&Command::Change(*change, Memory::default()));
            }
            Event::Loss(Loss::Save) => self.saved.clone_from(&self.stored),
            Event::Loss(loss) => {
                self.losses += 1;
                self.stored = match loss {
                    Loss::Forget => None,
                    _ => self.saved.clone(),
                };
            }
        }
    }

    fn finish(&mut self, n: usize) {
        let line = &mut self.lines[n].0;
        let running: Vec<_> = line.running.keys().copied().collect();
        for id in running {
            line.finish(id);
        }
    }

    /// Everything wanted of one command, whatever it is.
    fn apply(&mut self, command: &Command) -> Result<Reply, StateError> {
        let before = self.stored.clone();
        let outcome = rules::apply(&mut self.stored, &self.reading, command);
        if outcome.is_err() {
            assert_eq!(self.stored, before, "an error changes nothing");
            return outcome;
        }
        let after = self.stored.as_ref().unwrap();
        after.check().unwrap();
        if let Some(before) = &before {
            assert!(after.ticket >= before.ticket && after.current >= before.current, "{before:?} {after:?}");
            // Slots that were granted before a step of the clock are told by the clock after it.
            let back = before.seen_at - self.reading.now;
            if back > ms(1000) {
                self.slots.iter_mut().for_each(|slot| slot.slot = slot.slot - back);
            }
        }
        self.eras.enter(after.meters.rates());
        if let (Command::Step(step), Ok(Reply::Stepped(stepped))) = (command, &outcome) {
            let known = before.as_ref().and_then(|before| before.shards.get(&step.shard));
            let unheard = known.filter(|known| known.sequence > step.memory.sequence);
            for grant in &stepped.grants {
                if !unheard.is_some_and(|unheard| unheard.granted.contains(grant)) {
                    self.granted_in.insert((step.shard.clone(), grant.ticket), self.eras.last());
                }
            }
        }
        outcome
    }

    /// What a driver does until nothing is due. When it is to look again.
    fn drive(&mut self, n: usize, fate: Fate) -> Option<Instant> {
        for _ in 0..100 {
            self.start(n);
            let (line, lead) = &mut self.lines[n];
            match line.next(self.now, *lead, false) {
                Next::Send(step) => self.send(n, *step, fate),
                Next::Sleep(until) => return until,
                Next::Stop => return None,
                Next::Read => panic!("nothing has a deadline"),
            }
            if fate != Fate::Fine {
                return None;
            }
        }
        panic!("it says the same again and again: {:?}", self.lines[n]);
    }

    fn start(&mut self, n: usize) {
        let line = &mut self.lines[n].0;
        while let Some(due) = line.next_due(self.now) {
            let Due::Start(starting) = due else { panic!("nothing has a deadline") };
            let grant = starting.grant.unwrap();
            assert!(grant.slot <= self.now && grant.weight >= starting.job.weight);
            line.started(Started { id: starting.id, at: self.now, weight: grant.weight, abort: None });
        }
        line.held.lost.clear();
    }

    fn send(&mut self, n: usize, step: Step, fate: Fate) {
        self.sent.push(step.clone());
        let lost = || Err(StateError::new(StateErrorKind::TimedOut, "lost"));
        let outcome = match fate {
            Fate::LoseRequest => lost(),
            _ => self.apply(&Command::Step(step.clone())).and_then(Reply::stepped),
        };
        if let Ok(stepped) = &outcome {
            self.judge(&step, stepped);
        }
        match if fate == Fate::LoseReply { lost() } else { outcome } {
            Ok(stepped) => self.receive(n, &step, stepped),
            Err(error) => {
                let kind = error.kind();
                assert!(
                    matches!(kind, StateErrorKind::TimedOut | StateErrorKind::NotFound),
                    "a step of an honest shard: {error}"
                );
                let _refused = self.lines[n].0.fail(&error, self.now, 7);
            }
        }
    }

    /// What every reply owes.
    fn judge(&self, step: &Step, stepped: &Stepped) {
        let record = self.stored.as_ref().unwrap();
        let asked = step.ask.len() + step.take.as_ref().map_or(0, |take| take.weights.len());
        if let Some(wait) = stepped.wait.as_ref().filter(|_| asked > stepped.grants.len()) {
            let spins = wait.ask_in == Some(Micros::ZERO) && wait.reason != WaitReason::Missed;
            assert!(!spins, "asked and refused, and told to ask at once: {wait:?} {record:?}");
            assert_eq!(wait.ask_in.is_none(), record.paused, "{wait:?}");
        }
        let running: u32 = record.shards.values().map(|presence| presence.running).sum();
        if let (Some(limit), false) = (record.max_running, stepped.grants.is_empty()) {
            assert!(running <= limit, "{running} running, {limit} may");
        }
        // One that was overtaken may own a slot further ahead than its own lead, but never than the largest.
        assert!(stepped.grants.iter().all(|grant| grant.slot <= stepped.memory.at + MAX_LEAD), "{stepped:?}");
    }

    fn receive(&mut self, n: usize, step: &Step, stepped: Stepped) {
        let line = &mut self.lines[n].0;
        if let Some(taken) = stepped.taken {
            assert_eq!(Some(taken.count), step.take.as_ref().map(|take| take.count));
            for ticket in (0..u64::from(taken.count)).map(|n| taken.first.after(n)) {
                let other = self.owners.insert(ticket, line.identity.shard.clone());
                assert!(other.is_none() || self.losses > 0, "ticket {ticket} was given to {other:?} too");
            }
        }
        let weights = step.ask.iter().map(|ask| ask.weight);
        let weights = weights.chain(step.take.iter().flat_map(|take| take.weights.iter().copied()));
        for (grant, weight) in stepped.grants.iter().zip(weights) {
            let era = self.granted_in[&(step.shard.clone(), grant.ticket)];
            self.slots.push(Slot { slot: grant.slot, weight, era });
        }
        line.absorb(step, stepped, self.now, self.now);
    }

    /// How many slots came early: without them no span of time has more than the rates allow.
    pub(crate) fn early(&self) -> usize {
        let mut slots = self.slots.clone();
        slots.sort_by_key(|slot| slot.slot);
        let mut early = 0;
        let mut known = Vec::new();
        for Slot { slot, weight, era } in slots {
            known.push(judge::Slot { at: slot.get().try_into().unwrap(), weight, era });
            while let Some(overfull) = self.eras.overfull_span(&known, known.len() - 1, 0) {
                early += 1;
                // Whichever leaves more room for those that follow counts as the one in time.
                let (first, last) = overfull.places;
                known.remove((first..=last).max_by_key(|place| self.end(&known[*place])).unwrap());
            }
        }
        early
    }

    /// When the next slot comes, by the weight alone.
    fn end(&self, slot: &judge::Slot) -> i64 {
        let interval: i64 = self.eras.rates(slot.era)[0].interval.get().try_into().unwrap();
        slot.at + interval * i64::from(slot.weight)
    }

    /// How many slots a loss may give back.
    pub(crate) fn burst(&self) -> usize {
        self.eras.largest_burst() as usize
    }

    /// With all trouble over, every living shard does what is due when it is due, until no job is left.
    pub(crate) fn drain(&mut self) {
        let unlimited = Change::Set { rates: None, max_running: MaxRunning::Unlimited };
        self.happen(&Event::Change(unlimited));
        // What was reserved before a clock went back may be far away.
        let reserved =
            self.stored.as_ref().map_or(Micros::ZERO, |record| record.next_slot(1) - self.reading.now);
        let jobs: u64 = self.lines.iter().map(|(line, _)| line.backlog.len() as u64 + 10).sum();
        let (mut looks, began) = (0, self.now);
        loop {
            if self.stored.as_ref().is_some_and(|record| record.paused) {
                // A pause comes back with a shard's memory of it: its application resumes again.
                self.happen(&Event::Change(Change::Resume));
            }
            let mut due = Vec::new();
            for n in 0..SHARDS {
                self.finish(n);
                let until = self.drive(n, Fate::Fine);
                due.extend(until.filter(|_| !self.lines[n].0.backlog.is_empty()));
            }
            if self.lines.iter().all(|(line, _)| line.backlog.is_empty()) {
                return;
            }
            match due.into_iter().min() {
                Some(next) => {
                    self.pass(next.saturating_duration_since(self.now).max(Duration::from_micros(1)));
                }
                // A shard that found the queue paused is woken by a tick from outside.
                None => self.lines.iter_mut().for_each(|(line, _)| line.connection.request_now(self.now)),
            }
            looks += 1;
            // Nobody looks more often than slots, polls and leases ask for, and nothing takes longer than all
            // intervals, holds and leases.
            let passed = (self.now - began).as_millis() as u64;
            let most_looks = 200 * jobs + SHARDS as u64 * passed / 10;
            assert!(
                looks < most_looks && passed < 20_000 + 3_000 * jobs + reserved.get() / 1000,
                "{looks} looks in {passed} ms for {jobs} jobs: {:?} {:?}",
                self.stored,
                self.lines
            );
        }
    }
}
