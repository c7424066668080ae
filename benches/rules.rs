//! What the rules cost by themselves: a record in memory, a clock that is a number, no lock.
//!
//!     cargo bench --bench rules

#![allow(clippy::unwrap_used, reason = "a benchmark that fails says so")]

mod common;

use std::{collections::VecDeque, hint::black_box};

use criterion::{BatchSize, Criterion, Throughput};
use interval_queue_contract::{Command, Micros, Reading, Record, Stepped, Ticket, rules};

use common::commands::{self, Speaker};

const INTERVAL: Micros = Micros::from_millis(10);
/// How many other shards wait.
const OTHERS: [usize; 4] = [3, 10, 100, 1_000];
/// How many tickets one step asks for where slots are shorter than a round trip.
const RANGE: u32 = 100;

fn main() {
    let mut criterion = common::criterion();
    idle(&mut criterion);
    saturated(&mut criterion);
    range(&mut criterion);
    change(&mut criterion);
    lifted(&mut criterion);
    criterion.final_summary();
}

/// A record and its clock.
#[derive(Clone)]
struct Queue {
    record: Option<Record>,
    reading: Reading,
}

impl Queue {
    fn new() -> Self {
        let mut queue = Self { record: None, reading: Reading::of_clock(Micros::from_millis(1_000)) };
        rules::apply(&mut queue.record, &queue.reading, &commands::open(INTERVAL)).unwrap();
        queue
    }

    /// Carries a step out when `slots` intervals have gone by.
    fn step(&mut self, slots: u64, step: &Command) -> Stepped {
        self.reading.now = self.reading.now + INTERVAL * slots;
        rules::apply(&mut self.record, &self.reading, step).unwrap().stepped().unwrap()
    }
}

/// Shards that take turns: whose turn it is asks for its ticket, is granted it and takes another.
struct Crowd {
    queue: Queue,
    /// In the order of their tickets, each with its next step.
    steps: VecDeque<Command>,
}

impl Crowd {
    fn new(shards: usize) -> Self {
        let mut queue = Queue::new();
        let mut steps = VecDeque::new();
        for n in 0..shards {
            let mut speaker = Speaker::new(&format!("{n:016x}"));
            let taken = queue.step(0, &speaker.step([], 1, 0)).taken.unwrap();
            steps.push_back(speaker.step([taken.first], 1, 0));
        }
        // Nobody has started yet, so that the first slot is the present instant.
        Self { queue, steps }
    }

    fn turn(&mut self) -> Stepped {
        let mut command = self.steps.pop_front().unwrap();
        let stepped = self.queue.step(1, &command);
        assert_eq!(stepped.grants.len(), 1, "its slot has come");
        let Command::Step(step) = &mut command else { unreachable!("it was made as a step") };
        // Changed in place, so that little else than the rules is measured.
        step.sequence += 1;
        step.memory = stepped.memory;
        step.ask[0].ticket = stepped.taken.unwrap().first;
        step.take.as_mut().unwrap().request += 1;
        self.steps.push_back(command);
        stepped
    }

    /// The last in line asks for its slot long before that.
    fn refused(&mut self) -> Stepped {
        let Some(Command::Step(step)) = self.steps.back_mut() else { unreachable!("there is one") };
        step.sequence += 1;
        step.take = None;
        let command = self.steps.back().unwrap();
        let stepped = self.queue.step(0, command);
        assert!(stepped.wait.is_some(), "others are before it");
        stepped
    }
}

fn idle(criterion: &mut Criterion) {
    let mut queue = Queue::new();
    let step = Speaker::new("a").step([], 1, 1);
    assert_eq!(queue.step(1, &step).grants.len(), 1);
    criterion.bench_function("rules/idle: take and start", |bencher| {
        bencher.iter(|| queue.step(1, black_box(&step)));
    });
}

fn saturated(criterion: &mut Criterion) {
    for others in OTHERS {
        let mut crowd = Crowd::new(others + 1);
        criterion.bench_function(&format!("rules/saturated, {others} others: start and take"), |bencher| {
            bencher.iter(|| crowd.turn());
        });
        criterion.bench_function(&format!("rules/saturated, {others} others: ask too early"), |bencher| {
            bencher.iter(|| crowd.refused());
        });
    }
}

fn range(criterion: &mut Criterion) {
    let mut queue = Queue::new();
    let mut speaker = Speaker::new("a").with_lead(INTERVAL * u64::from(RANGE));
    let mut tickets = queue.step(1, &speaker.step([], RANGE, 0)).taken.unwrap().first;
    let mut group = criterion.benchmark_group("rules");
    group.throughput(Throughput::Elements(u64::from(RANGE)));
    group.bench_function(format!("start and take {RANGE}"), |bencher| {
        bencher.iter(|| {
            let asked = (0..u64::from(RANGE)).map(|n| tickets.after(n));
            let stepped = queue.step(u64::from(RANGE), &speaker.step(asked, RANGE, 0));
            assert_eq!(stepped.grants.len(), RANGE as usize, "their slots are within the lead");
            tickets = stepped.taken.unwrap().first;
        });
    });
    group.finish();
}

fn change(criterion: &mut Criterion) {
    let mut crowd = Crowd::new(4);
    let change = commands::change(INTERVAL);
    criterion.bench_function("rules/change", |bencher| {
        bencher.iter(|| {
            rules::apply(&mut crowd.queue.record, &crowd.queue.reading, black_box(&change)).unwrap()
        });
    });
}

/// The record was put back to an older one; the first shard that remembers more lifts it.
fn lifted(criterion: &mut Criterion) {
    let mut crowd = Crowd::new(4);
    let old = crowd.queue.clone();
    for _ in 0..40 {
        crowd.turn();
    }
    let step = crowd.steps.front().unwrap().clone();
    let now = crowd.queue.reading.now;
    let put_back = || Queue { reading: Reading::of_clock(now), ..old.clone() };
    let lifted = put_back().step(0, &step);
    assert!(
        lifted.memory.ticket > old.record.as_ref().map_or(Ticket::NONE, |record| record.ticket.after(30))
    );
    criterion.bench_function("rules/lift a record that was put back", |bencher| {
        bencher.iter_batched(put_back, |mut queue| queue.step(0, black_box(&step)), BatchSize::SmallInput);
    });
}
