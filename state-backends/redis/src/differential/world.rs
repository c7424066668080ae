//! Random sequences of commands: shards that keep to the contract and shards that do not, crashes, steps of the clock,
//! restarts of the server, losses of the record, and numbers near the end of what a double holds.

use interval_queue_contract::{
    Ask, Change, Command, Label, Late, MAX_INTERVAL, MAX_LEAD, MAX_LEASE, MAX_TAKE, MAX_WEIGHT, MIN_LEASE,
    MaxRunning, Memory, Micros, OnExisting, Reading, Record, Reply, ShardId, Step, Stepped, Take, Ticket,
    WaitReason, rules,
};
use rand::{RngExt, SeedableRng, rngs::StdRng};

use super::{Outcome, outcome};

const MOST: u64 = Micros::MAX.get();
/// The server tells revisions above what a double holds apart no more; nobody ever gets there.
const LAST_REVISION: u64 = MOST - 1_000;

/// A command with what came before it and what the Rust rules make of it.
pub(super) struct Event {
    pub(super) before: Accident,
    pub(super) command: Command,
    pub(super) reading: Reading,
    pub(super) reply: Outcome,
    pub(super) record: Outcome,
}

/// What happens to the record behind everybody's back.
#[derive(Clone, Copy)]
pub(super) enum Accident {
    Nothing,
    Lost,
    Copied,
    Rewound,
}

/// What the sequences brought about. A zero would mean that something is not compared.
#[derive(Debug, Default)]
pub(super) struct Tally {
    granted: u32,
    taken: u32,
    behind: u32,
    missed: u32,
    paused: u32,
    at_max_running: u32,
    superseded: u32,
    refused: u32,
    gone: u32,
}

pub(super) struct World {
    random: StdRng,
    record: Option<Record>,
    copy: Option<Record>,
    now: u64,
    incarnation: String,
    interval: u64,
    shards: Vec<Shard>,
}

struct Shard {
    id: ShardId,
    label: Label,
    memory: Memory,
    sequence: u64,
    request: u64,
    waiting: Vec<Ticket>,
    running: u32,
    lease: Micros,
    lead: Micros,
    late: Late,
    unacknowledged: Option<Take>,
}

impl World {
    pub(super) fn new(seed: u64) -> Self {
        let mut random = StdRng::seed_from_u64(seed);
        let huge = random.random_bool(0.15);
        let now = match (huge, random.random_range(0..4)) {
            (true, _) => MOST - random.random_range(0..5_000_000_000),
            (false, 0) => random.random_range(0..10_000_000),
            (false, _) => 1_760_000_000_000_000 + random.random_range(0..1_000_000_000),
        };
        let intervals = [1, 999, 10_000, 250_000, 3_000_000, MAX_INTERVAL.get()];
        let interval = intervals[random.random_range(0..intervals.len())];
        let count = random.random_range(1..=5);
        let shards = (0..count).map(|n| Shard::new(n, &mut random)).collect();
        Self { random, record: None, copy: None, now, incarnation: "a".into(), interval, shards }
    }

    /// The next event.
    pub(super) fn happen(&mut self) -> Event {
        self.pass_time();
        let before = self.accident();
        let reading = Reading { now: Micros::new(self.now), incarnation: self.incarnation.clone() };
        let chosen = self.random.random_range(0..self.shards.len());
        let command = match self.random.random_range(0..100) {
            _ if self.record.is_none() && self.random.random_bool(0.5) => self.open(chosen),
            // Little is decided in a pause.
            0..30 if self.record.as_ref().is_some_and(|record| record.paused) => {
                Command::Change(Change::Resume, self.memory(chosen))
            }
            0..4 => self.open(chosen),
            4..16 => self.change(chosen),
            16..30 => Command::Step(self.dishonest_step(chosen)),
            _ => Command::Step(self.honest_step(chosen)),
        };
        let reply = rules::apply(&mut self.record, &reading, &command);
        if let Ok(reply) = &reply
            && self.random.random_bool(0.95)
        {
            let shard = &mut self.shards[chosen];
            match (&command, reply) {
                (Command::Step(step), Reply::Stepped(stepped)) => shard.learn(step, stepped),
                (_, Reply::Changed(changed)) => shard.memory.learn(changed.memory),
                _ => {}
            }
        }
        let record = rules::apply(&mut self.record, &reading, &Command::Read);
        Event { before, command, reading, reply: outcome(reply), record: outcome(record) }
    }

    fn pass_time(&mut self) {
        let seen_at = self.record.as_ref().map_or(self.now, |record| record.seen_at.get());
        let random = &mut self.random;
        let interval = self.interval.min(10_000_000);
        let now = self.now;
        self.now = match random.random_range(0..100) {
            0..30 => now + random.random_range(0..=interval / 4),
            30..80 => now + random.random_range(0..=2 * interval),
            80..90 => now + random.random_range(0..12_000_000),
            90..92 => now + random.random_range(0..40_000_000_000),
            92 => now.saturating_sub(random.random_range(0..=1_000_001)),
            // Just what counts as standing still, and just more.
            93..95 => seen_at.saturating_sub(random.random_range(1_000_000..=1_000_001)),
            95..97 => now.saturating_sub(random.random_range(0..100_000_000)),
            97 => now.saturating_sub(random.random_range(0..40_000_000_000)),
            _ => now,
        }
        .min(MOST);
        if random.random_bool(0.02) {
            let names = ["a", "b", "c0ffee", ""];
            self.incarnation = names[random.random_range(0..names.len())].into();
        }
    }

    fn accident(&mut self) -> Accident {
        match self.random.random_range(0..100) {
            0 => {
                self.record = None;
                Accident::Lost
            }
            1..5 => {
                self.copy = self.record.clone();
                Accident::Copied
            }
            5..7 => {
                self.record = self.copy.clone();
                Accident::Rewound
            }
            _ => Accident::Nothing,
        }
    }

    fn settings(&mut self) -> (Option<Micros>, MaxRunning) {
        let random = &mut self.random;
        let interval = match random.random_range(0..8) {
            0 => None,
            1 => Some(random.random_range(1..=MAX_INTERVAL.get())),
            2 => Some(self.interval * 2),
            _ => Some(self.interval),
        };
        let limit = match random.random_range(0..8) {
            0..2 => MaxRunning::Unlimited,
            2 => MaxRunning::AtMost(random.random_range(0..u32::MAX)),
            3..5 => MaxRunning::AtMost(random.random_range(1..6)),
            _ => MaxRunning::Keep,
        };
        (interval.map(Micros::new), limit)
    }

    fn open(&mut self, shard: usize) -> Command {
        let (interval, max_running) = self.settings();
        let policies = [OnExisting::Replace, OnExisting::Join, OnExisting::Fail, OnExisting::Reset];
        let on_existing = policies[self.random.random_range(0..policies.len())];
        let change = Change::Open { interval, max_running, on_existing };
        Command::Change(change, self.memory(shard))
    }

    fn change(&mut self, shard: usize) -> Command {
        let (interval, max_running) = self.settings();
        let change = match self.random.random_range(0..16) {
            0..3 => Change::Pause,
            3..9 => Change::Resume,
            9 => Change::Hold(Micros::new(self.random.random_range(0..=MAX_INTERVAL.get()))),
            10..13 => Change::Hold(Micros::new(self.random.random_range(0..=3 * self.interval))),
            13..15 => Change::Set { interval, max_running },
            _ => Change::Reset,
        };
        Command::Change(change, self.memory(shard))
    }

    /// That of the shard, none, or any.
    fn memory(&mut self, shard: usize) -> Memory {
        let mine = self.shards[shard].memory;
        match self.random.random_range(0..20) {
            0..3 => Memory::default(),
            3 => self.any_memory(mine),
            _ => mine,
        }
    }

    fn any_memory(&mut self, near: Memory) -> Memory {
        let at = self.number(self.now);
        let ticket = self.number(near.ticket.get());
        // One beyond is refused.
        let current = self.number(near.current.get()).min(ticket.saturating_add(1)).min(MOST);
        Memory {
            at: Micros::new(at),
            sequence: self.number(near.sequence),
            ticket: Ticket::new(ticket),
            current: Ticket::new(current),
            free_at: Micros::new(self.number(near.free_at.get())),
            revision: self.number(near.revision).min(LAST_REVISION),
            interval: Micros::new(self.number(self.interval)),
            max_running: self.random.random_bool(0.5).then(|| self.random.random_range(0..9)),
            paused: self.random.random_bool(0.2),
            held_until: Micros::new(self.number(self.now)),
            longest_lead: Micros::new(self.random.random_range(0..=interval_queue_contract::MAX_LEAD.get())),
            shards: self.random.random_range(0..9),
        }
    }

    /// Mostly near another one, sometimes at an end of the range or anywhere.
    fn number(&mut self, near: u64) -> u64 {
        let random = &mut self.random;
        match random.random_range(0..24) {
            0 => MOST - random.random_range(0..3),
            1 => random.random_range(0..3),
            2 => random.random_range(0..=MOST),
            3..14 => near.saturating_sub(random.random_range(0..5)),
            _ => near.saturating_add(random.random_range(0..5)).min(MOST),
        }
    }

    fn honest_step(&mut self, chosen: usize) -> Step {
        let memory = self.memory(chosen);
        let random = &mut self.random;
        let shard = &mut self.shards[chosen];
        shard.sequence = (shard.sequence + 1).min(MOST);
        shard.running -= random.random_range(0..=shard.running);
        let mut given_up = None;
        if !shard.waiting.is_empty() && random.random_bool(0.1) {
            given_up = shard.waiting.pop();
        }
        let asked = random.random_range(0..=shard.waiting.len().min(4));
        let weight = |random: &mut StdRng| {
            if random.random_bool(0.85) { 1 } else { random.random_range(1..5) }
        };
        let ask: Vec<Ask> =
            shard.waiting[..asked].iter().map(|&ticket| Ask { ticket, weight: weight(random) }).collect();
        let then = shard.waiting.get(asked).copied();
        let mut take = shard.unacknowledged.take();
        if take.is_none() && random.random_bool(0.5) {
            shard.request += 1;
            take =
                Some(Take { request: shard.request, count: random.random_range(1..5), weights: Vec::new() });
        }
        if let Some(take) = &mut take {
            let most = if then.is_some() { 0 } else { take.count };
            take.weights = (0..random.random_range(0..=most)).map(|_| weight(random)).collect();
        }
        shard.unacknowledged.clone_from(&take);
        Step {
            shard: shard.id.clone(),
            label: shard.label.clone(),
            sequence: shard.sequence,
            memory,
            lease: shard.lease,
            lead: shard.lead,
            take,
            ask,
            then,
            late: shard.late,
            running: shard.running,
            given_up,
        }
    }

    /// A step that breaks the contract somewhere, as a rule within the bounds.
    fn dishonest_step(&mut self, chosen: usize) -> Step {
        let mut step = self.honest_step(chosen);
        let last = self.record.as_ref().map_or(0, |record| record.ticket.get());
        for _ in 0..self.random.random_range(1..4) {
            match self.random.random_range(0..12) {
                0 => step.sequence = self.number(step.sequence),
                1 => step.memory = self.any_memory(step.memory),
                2 => step.lease = Micros::new(self.random.random_range(MIN_LEASE.get()..=MAX_LEASE.get())),
                3 => step.lead = Micros::new(self.random.random_range(0..=MAX_LEAD.get())),
                4 => step.running = [7, u32::MAX - 1, u32::MAX][self.random.random_range(0..3)],
                5 => step.given_up = Some(Ticket::new(self.number(last))),
                6 => step.then = Some(Ticket::new(self.number(last))),
                7 => {
                    let mut tickets: Vec<u64> = (0..3).map(|_| self.number(last)).collect();
                    tickets.sort_unstable();
                    tickets.dedup();
                    let ask = tickets.into_iter().map(|ticket| Ask {
                        ticket: Ticket::new(ticket),
                        weight: self.random.random_range(1..3),
                    });
                    step.ask = ask.collect();
                    step.then = None;
                }
                8 => {
                    if let Some(ask) = step.ask.first_mut() {
                        ask.weight = self.random.random_range(1..=MAX_WEIGHT);
                    }
                }
                9 => {
                    step.take = Some(Take {
                        request: self.number(2),
                        count: self.random.random_range(1..=MAX_TAKE),
                        weights: Vec::new(),
                    });
                }
                10 => step.late = Late::Requeue,
                _ => step.ask.clear(),
            }
        }
        step
    }

    pub(super) fn count(&self, events: &[Event], tally: &mut Tally) {
        use interval_queue_contract::StateErrorKind;
        for event in events {
            match &event.reply {
                Ok(Reply::Stepped(stepped)) => tally.step(stepped),
                Err((StateErrorKind::Superseded, _)) => tally.superseded += 1,
                Err(_) => tally.refused += 1,
                Ok(_) => {}
            }
            tally.gone += u32::from(matches!(event.record, Ok(Reply::Read(None))));
        }
    }
}

impl Tally {
    fn step(&mut self, stepped: &Stepped) {
        self.granted += u32::from(!stepped.grants.is_empty());
        self.taken += u32::from(stepped.taken.is_some());
        match stepped.wait.as_ref().map(|wait| &wait.reason) {
            Some(WaitReason::Behind { .. }) => self.behind += 1,
            Some(WaitReason::Missed) => self.missed += 1,
            Some(WaitReason::Paused) => self.paused += 1,
            Some(WaitReason::AtMaxRunning) => self.at_max_running += 1,
            _ => {}
        }
    }

    pub(super) fn check(&self) {
        for seen in [
            self.granted,
            self.taken,
            self.behind,
            self.missed,
            self.paused,
            self.at_max_running,
            self.superseded,
            self.refused,
            self.gone,
        ] {
            assert!(seen > 100, "too rare to be worth comparing: {self:?}");
        }
    }
}

impl Shard {
    fn new(n: usize, random: &mut StdRng) -> Self {
        let sequences = [0, 0, 0, MOST - 30];
        Self {
            id: ShardId::new(["a", "b c", "ü-", "d:0", "-"][n]).unwrap(),
            label: Label::new(["", "host:1", "two words  and more", "日本", "-"][n]).unwrap(),
            memory: Memory::default(),
            sequence: sequences[random.random_range(0..sequences.len())],
            request: 0,
            waiting: Vec::new(),
            running: 0,
            lease: Micros::from_millis([100, 101, 5_000, 60_000][random.random_range(0..4)]),
            lead: Micros::new([0, 1, 2_001, 40_000, 1_000_000][random.random_range(0..5)]),
            late: if random.random_bool(0.2) { Late::Requeue } else { Late::NextSlot },
            unacknowledged: None,
        }
    }

    fn learn(&mut self, step: &Step, stepped: &Stepped) {
        self.memory.learn(stepped.memory);
        self.unacknowledged = None;
        if let Some(taken) = stepped.taken {
            // More would only make the sequence slow.
            let count = u64::from(taken.count).min(6);
            self.waiting.extend((0..count).map(|n| taken.first.after(n)));
        }
        for grant in &stepped.grants {
            self.running = self.running.saturating_add(1);
            self.waiting.retain(|ticket| *ticket != grant.ticket);
        }
        if step.late == Late::Requeue
            && matches!(&stepped.wait, Some(wait) if wait.reason == WaitReason::Missed)
        {
            self.waiting.retain(|ticket| *ticket > stepped.memory.current);
        }
        self.waiting.sort_unstable();
        self.waiting.dedup();
    }
}
