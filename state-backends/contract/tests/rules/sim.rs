//! A few simulated shards on one record: they keep their tickets, memory and sequence as real ones do, while
//! requests and replies get lost, shards die, and the record and its clock are tampered with.

use std::collections::BTreeMap;

use interval_queue_contract::{
    Ask, Change, Command, Late, MAX_LEAD, MaxRunning, Memory, Micros, OnExisting, Record, Reply, ShardId,
    StateErrorKind, Step, Stepped, Ticket, WaitReason,
};
use proptest::prelude::*;

use crate::common::{self, Shard, State, ms};

/// One thing that happens.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    Pass(u64),
    Work(Work),
    /// A command that was sent before arrives, again or only now.
    Arrive(usize),
    Crash(usize),
    /// A shard drops its highest ticket.
    Cancel(usize),
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

/// A shard steps.
#[derive(Clone, Debug)]
pub(crate) struct Work {
    shard: usize,
    take: u32,
    asks: usize,
    weight: u32,
    lead: Micros,
    fate: Fate,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    Fine,
    LoseRequest,
    LoseReply,
}

pub(crate) const SHARDS: usize = 4;
const INTERVALS: [Micros; 4] = [ms(1), ms(10), ms(100), ms(1000)];

pub(crate) fn work() -> impl Strategy<Value = Event> {
    const LEADS: [Micros; 5] = [ms(0), ms(5), ms(50), ms(400), ms(1000)];
    let fate = prop_oneof![8 => Just(Fate::Fine), 1 => Just(Fate::LoseRequest), 1 => Just(Fate::LoseReply)];
    let take = prop_oneof![2 => Just(0), 2 => 1..4_u32];
    let weight = prop_oneof![6 => Just(1), 1 => 2..4_u32];
    (0..SHARDS, take, 1..4_usize, weight, prop::sample::select(&LEADS[..]), fate).prop_map(
        |(shard, take, asks, weight, lead, fate)| Event::Work(Work { shard, take, asks, weight, lead, fate }),
    )
}

pub(crate) fn change() -> impl Strategy<Value = Event> {
    let set = |interval, max_running| Change::Set { interval, max_running };
    prop_oneof![
        1 => Just(Change::Pause),
        2 => Just(Change::Resume),
        1 => (0..3000_u64).prop_map(|hold| Change::Hold(ms(hold))),
        1 => prop::sample::select(&INTERVALS[..]).prop_map(move |interval| set(Some(interval), MaxRunning::Keep)),
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
        1 => shard.clone().prop_map(Event::Cancel),
        2 => shard.clone().prop_map(Event::Finish),
        1 => change(),
        1 => shard.prop_map(Event::Crash),
    ]
}

/// A start: a grant that its shard received.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Start {
    pub(crate) slot: Micros,
    pub(crate) weight: u32,
    /// Where in the history of intervals it was granted.
    era: usize,
}

#[derive(Debug)]
pub(crate) struct Sim {
    pub(crate) shard: Shard,
    /// Outstanding tickets, rising, with their weights.
    pub(crate) tickets: Vec<Ask>,
    running: u32,
    /// A take that was not answered: request, count and weight.
    pending: Option<(u64, u32, u32)>,
    given_up: Option<Ticket>,
    requeue: u32,
    lead: Micros,
}

pub(crate) struct World {
    pub(crate) state: State,
    pub(crate) sims: Vec<Sim>,
    pub(crate) starts: Vec<Start>,
    /// Every interval that was in force, in order.
    eras: Vec<Micros>,
    sent: Vec<Step>,
    saved: Option<Record>,
    names: usize,
    owners: BTreeMap<Ticket, ShardId>,
    /// How often the record was lost or rewound.
    pub(crate) losses: usize,
    /// The lead of all shards, where it is the same for all.
    lead: Option<Micros>,
}

impl World {
    pub(crate) fn new(interval: Micros) -> Self {
        let mut state = State::empty();
        state.change(common::open(Some(interval), MaxRunning::Keep, Default::default())).unwrap();
        let mut world = Self {
            eras: vec![interval],
            saved: state.stored.clone(),
            state,
            sims: Vec::new(),
            starts: Vec::new(),
            sent: Vec::new(),
            names: 0,
            owners: BTreeMap::new(),
            losses: 0,
            lead: None,
        };
        for _ in 0..SHARDS {
            let sim = world.newcomer();
            world.sims.push(sim);
        }
        world
    }

    /// The same with one lead for all shards: as far as it goes, slots are lost with the record.
    pub(crate) fn with_lead(interval: Micros, lead: Micros) -> Self {
        Self { lead: Some(lead), ..Self::new(interval) }
    }

    fn newcomer(&mut self) -> Sim {
        self.names += 1;
        let mut shard =
            Shard::new(&format!("s{}", self.names)).leased([ms(100), ms(1000), ms(5000)][self.names % 3]);
        if self.names.is_multiple_of(4) {
            shard.late = Late::Requeue;
        }
        let open = common::open(self.eras.last().copied(), MaxRunning::Keep, OnExisting::Join);
        let opened = self.apply(&Command::Change(open, Memory::default()));
        shard.memory = opened.unwrap().changed().unwrap().memory;
        Sim {
            shard,
            tickets: Vec::new(),
            running: 0,
            pending: None,
            given_up: None,
            requeue: 0,
            lead: Micros::ZERO,
        }
    }

    pub(crate) fn happen(&mut self, event: &Event) {
        match event {
            Event::Pass(millis) => self.state.reading.now = self.state.reading.now + ms(*millis),
            Event::StepBack(millis) => self.state.reading.now = self.state.reading.now - ms(*millis),
            Event::Work(work) => {
                self.work(work);
            }
            Event::Arrive(n) => {
                if !self.sent.is_empty() {
                    let step = self.sent[n % self.sent.len()].clone();
                    let _nobody_listens = self.apply(&Command::Step(step));
                }
            }
            Event::Crash(n) => self.sims[*n] = self.newcomer(),
            Event::Cancel(n) => {
                let sim = &mut self.sims[*n];
                sim.given_up = sim.given_up.max(sim.tickets.pop().map(|ask| ask.ticket));
            }
            Event::Finish(n) => self.sims[*n].running = 0,
            Event::Change(change) => {
                let _refused_or_not = self.apply(&Command::Change(*change, Memory::default()));
            }
            Event::Loss(Loss::Save) => self.saved.clone_from(&self.state.stored),
            Event::Loss(loss) => {
                self.losses += 1;
                self.state.stored = match loss {
                    Loss::Forget => None,
                    _ => self.saved.clone(),
                };
            }
        }
    }

    /// Everything wanted of one command, whatever it is.
    fn apply(&mut self, command: &Command) -> Result<Reply, StateErrorKind> {
        let before = self.state.stored.clone();
        let outcome = self.state.apply(command);
        if let (Err(error), after) = (&outcome, &self.state.stored) {
            assert_eq!(*after, before, "an error changes nothing");
            return Err(error.kind());
        }
        let after = self.state.stored.clone().unwrap();
        after.check().unwrap();
        if let Some(before) = before {
            assert!(after.ticket >= before.ticket && after.current >= before.current, "{before:?} {after:?}");
            self.follow_clock(&before);
        }
        if self.eras.last() != Some(&after.interval) {
            self.eras.push(after.interval);
        }
        outcome.map_err(|error| error.kind())
    }

    /// Slots that were granted before a step of the clock are told by the clock after it.
    fn follow_clock(&mut self, before: &Record) {
        let back = before.seen_at - self.state.now();
        if back > ms(1000) {
            for start in &mut self.starts {
                start.slot = start.slot - back;
            }
        }
    }

    fn work(&mut self, work: &Work) -> Option<Stepped> {
        let sim = &mut self.sims[work.shard];
        sim.lead = self.lead.unwrap_or(work.lead);
        let wanted = work.take + std::mem::take(&mut sim.requeue);
        if wanted > 0 && sim.pending.is_none() {
            sim.shard.request += 1;
            sim.pending = Some((sim.shard.request, wanted, work.weight));
        }
        let step = sim.step(work.asks);
        self.sent.push(step.clone());
        if work.fate == Fate::LoseRequest {
            return None;
        }
        let outcome = self.apply(&Command::Step(step.clone()));
        let stepped = match outcome {
            Ok(reply) => reply.stepped().unwrap(),
            Err(kind) => {
                assert_eq!(kind, StateErrorKind::NotFound, "a step of an honest shard");
                return None;
            }
        };
        self.judge(&step, &stepped);
        if work.fate == Fate::LoseReply {
            return None;
        }
        self.receive(work.shard, &stepped);
        Some(stepped)
    }

    /// What every reply owes.
    fn judge(&self, step: &Step, stepped: &Stepped) {
        let record = self.state.record();
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
        assert!(stepped.grants.iter().all(|grant| grant.start_in <= MAX_LEAD), "{stepped:?}");
    }

    fn receive(&mut self, n: usize, stepped: &Stepped) {
        let era = self.eras.len() - 1;
        let sim = &mut self.sims[n];
        sim.shard.memory.learn(stepped.memory);
        sim.given_up = None;
        if let (Some(taken), Some((_, count, weight))) = (stepped.taken, sim.pending.take()) {
            assert_eq!(taken.count, count);
            for ticket in (0..u64::from(count)).map(|n| taken.first.after(n)) {
                sim.tickets.push(Ask { ticket, weight });
                let other = self.owners.insert(ticket, sim.shard.id.clone());
                assert!(other.is_none() || self.losses > 0, "ticket {ticket} was given to {other:?} too");
            }
        }
        for grant in &stepped.grants {
            let ask = sim.tickets.remove(0);
            assert_eq!(ask.ticket, grant.ticket, "granted in order");
            sim.running += 1;
            self.starts.push(Start { slot: stepped.memory.at + grant.start_in, weight: ask.weight, era });
        }
        if stepped.wait.as_ref().is_some_and(|wait| wait.reason == WaitReason::Missed) {
            sim.tickets.remove(0);
            sim.requeue += 1;
        }
    }

    /// How many starts came early: without them no two are closer than every interval in force between them
    /// allows.
    pub(crate) fn early(&self) -> usize {
        let mut starts = self.starts.clone();
        starts.sort_by_key(|start| start.slot);
        let mut early = 0;
        let mut last: Option<Start> = None;
        for start in starts {
            last = match last {
                Some(last) if self.too_close(&last, &start) => {
                    early += 1;
                    // Whichever leaves more room for those that follow counts as the one in time.
                    Some(if self.end(&start) < self.end(&last) { start } else { last })
                }
                _ => Some(start),
            };
        }
        early
    }

    fn too_close(&self, a: &Start, b: &Start) -> bool {
        let eras = &self.eras[a.era.min(b.era)..=a.era.max(b.era)];
        let interval = eras.iter().min().copied().unwrap_or_default();
        b.slot - a.slot < interval * u64::from(a.weight)
    }

    fn end(&self, start: &Start) -> Micros {
        start.slot + self.eras[start.era] * u64::from(start.weight)
    }

    /// With all trouble over, every living shard asks when it was told to, until nothing is left.
    pub(crate) fn drain(&mut self) {
        self.happen(&Event::Change(Change::Resume));
        let unlimited = Change::Set { interval: None, max_running: MaxRunning::Unlimited };
        self.happen(&Event::Change(unlimited));
        let mut due = [self.state.now(); SHARDS];
        let tickets: u64 = self.sims.iter().map(|sim| sim.tickets.len() as u64 + 10).sum();
        let (mut steps, began) = (0, self.state.now());
        while let Some(n) = (0..SHARDS).filter(|n| self.sims[*n].is_busy()).min_by_key(|n| due[*n]) {
            self.state.reading.now = self.state.reading.now.max(due[n]);
            self.sims[n].running = 0;
            let (lead, fate) = (self.sims[n].lead, Fate::Fine);
            let work = Work { shard: n, take: 0, asks: 1, weight: 1, lead, fate };
            let stepped = self.work(&work);
            let now = self.state.now();
            due[n] = match stepped.map(|stepped| stepped.wait) {
                Some(Some(wait)) if wait.reason != WaitReason::Missed => match wait.ask_in {
                    Some(ask_in) => now + ask_in,
                    // The pause came back with a shard's memory of it: its application resumes again.
                    None => {
                        self.happen(&Event::Change(Change::Resume));
                        now
                    }
                },
                _ => now,
            };
            steps += 1;
            // Nobody asks more often than its lease asks for, and nothing takes longer than all intervals,
            // holds and leases.
            let passed = (self.state.now() - began).get() / 1000;
            let most_steps = 60 * tickets + SHARDS as u64 * passed / 25;
            let most_millis = 20_000 + 3_000 * tickets;
            assert!(
                steps < most_steps && passed < most_millis,
                "{steps} steps in {passed} ms for {tickets} tickets: {:?} {:?}",
                self.state,
                self.sims
            );
        }
    }
}

impl Sim {
    fn is_busy(&self) -> bool {
        !self.tickets.is_empty() || self.pending.is_some() || self.requeue > 0
    }

    fn step(&mut self, asks: usize) -> Step {
        let ask: Vec<Ask> = self.tickets.iter().take(asks).copied().collect();
        let then = self.tickets.get(asks).map(|ask| ask.ticket);
        let take = self.pending.map(|(request, count, weight)| interval_queue_contract::Take {
            request,
            count,
            weights: match then {
                Some(_) => Vec::new(),
                None => vec![weight; asks.min(count as usize)],
            },
        });
        Step {
            lead: self.lead,
            take,
            ask,
            then,
            running: self.running,
            given_up: self.given_up,
            ..self.shard.step()
        }
    }
}
