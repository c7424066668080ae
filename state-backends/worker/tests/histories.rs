//! Several workers on the real rules, whatever happens to their messages and to themselves: lost, doubled and late
//! requests, lost replies, stalls, crashes, restarts, and an operator who cancels and takes back.
//!
//! The queue gets a rate now and then, which is removed again. No task leased under a rate starts outside it; no
//! token is started twice; what a worker that is awake takes for its own is its own by the store, too; and in the
//! end every task has ended as its last run said.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, BinaryHeap},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use fastrand::Rng;
use futures::FutureExt;
use interval_queue_contract::{Label, Micros, QueueName, StateError, StateErrorKind};
use interval_queue_memory::MemoryTasks;
use interval_queue_task_contract::{
    Add, Change, ChangeTasks, Command, Json, Key, Kind, Leased, NewTask, Outcome, Policy, Read, Reply,
    Selector, State, Step, Stepped, Stored, TaskId, TaskStore, Verb, WorkerId,
};
use interval_queue_worker::{Identity, Next, RunId, Worker};
use uuid::Uuid;

const LEASE: u64 = 30_000;
/// When the faults end, and by when all has to be over.
const CALM: u64 = 600_000;
const END: u64 = 3 * 3_600_000;

#[derive(Debug)]
enum Event {
    /// A worker looks what is to do.
    Wake(usize),
    /// A step comes to the store, whose answer may be lost.
    Arrives(usize, Box<Step>, bool),
    /// Its answer comes back.
    Answered(usize, u64, Box<Result<Stepped, StateError>>),
    /// A look at the rate comes to the store.
    LookupArrives(usize, u64),
    /// Its answer comes back: whether there is a rate.
    LookupAnswered(usize, u64, Option<bool>),
    /// Somebody gives the queue a rate, or removes it.
    Rate,
    /// Nothing came back in time.
    TimedOut(usize, u64),
    /// A run ends by itself.
    RunEnds(usize, RunId),
    /// A run that was told to end has done so.
    Stopped(usize, RunId),
    /// A producer adds a task.
    Add(u128),
    /// An operator does something.
    Operator,
    /// A process crashes, stalls or restarts.
    Harm,
}

struct Process {
    worker: Worker,
    /// It does nothing until then.
    stalled: u64,
    /// The store is out of its reach until then.
    cut_off: u64,
    is_dead: bool,
    /// The exchange that it waits for, if its starts are paced.
    choosing: Option<u64>,
    runs: BTreeMap<RunId, Outcome>,
}

struct World {
    rng: Rng,
    now: u64,
    base: Instant,
    clock: Arc<AtomicU64>,
    store: MemoryTasks,
    queue: QueueName,
    events: BinaryHeap<Reverse<(u64, u64, usize)>>,
    bodies: Vec<Option<Event>>,
    processes: Vec<Process>,
    /// Since when there is a rate.
    rate: Option<u64>,
    /// When each lease was given.
    leased: BTreeMap<RunId, u64>,
    started: BTreeSet<RunId>,
    done: BTreeSet<RunId>,
    steps: u64,
}

fn id(number: u128) -> TaskId {
    TaskId::new(Uuid::from_u128(number))
}

impl World {
    #[allow(clippy::disallowed_methods, reason = "any instant does")]
    fn new(seed: u64) -> Self {
        let clock = Arc::new(AtomicU64::new(1_000_000_000));
        let read = clock.clone();
        let store = MemoryTasks::with_clock(move || Micros::new(read.load(Ordering::Relaxed)));
        Self {
            rng: Rng::with_seed(seed),
            now: 0,
            base: Instant::now(),
            clock,
            store,
            queue: QueueName::new("test").unwrap(),
            events: BinaryHeap::new(),
            bodies: Vec::new(),
            processes: Vec::new(),
            rate: None,
            leased: BTreeMap::new(),
            started: BTreeSet::new(),
            done: BTreeSet::new(),
            steps: 0,
        }
    }

    fn at(&mut self, when: u64, event: Event) {
        let number = self.bodies.len();
        self.bodies.push(Some(event));
        self.events.push(Reverse((when, number as u64, number)));
    }

    fn instant(&self) -> Instant {
        self.base + Duration::from_millis(self.now)
    }

    fn is_calm(&self) -> bool {
        self.now >= CALM
    }

    fn chance(&mut self, percent: u64) -> bool {
        !self.is_calm() && self.rng.u64(0..100) < percent
    }

    fn apply(&mut self, command: Command) -> Result<Reply, StateError> {
        self.clock.store(1_000_000_000 + self.now * 1_000, Ordering::Relaxed);
        self.store.apply(&self.queue, command).now_or_never().unwrap()
    }

    fn spawn(&mut self) {
        let number = self.processes.len();
        let permits = self.rng.u32(1..4);
        let identity = Identity {
            worker: WorkerId::new(Uuid::from_u128(number as u128 + 1)),
            label: Label::default(),
            kinds: vec![Kind::default()],
            lease: Micros::from_millis(LEASE),
            permits,
            prefetch: self.rng.u32(0..=permits),
            capacity: self.rng.bool().then(|| self.rng.u32(1..5)),
        };
        let worker = Worker::new(identity);
        self.processes.push(Process {
            worker,
            stalled: 0,
            cut_off: 0,
            is_dead: false,
            choosing: None,
            runs: BTreeMap::new(),
        });
        self.at(self.now, Event::Wake(number));
    }

    /// Lets a worker do all that it would do now.
    fn drive(&mut self, number: usize) {
        let now = self.instant();
        for turn in 0.. {
            assert!(turn < 1_000, "worker {number} turns in a circle");
            while let Some(order) = self.processes[number].worker.order() {
                let wait = self.rng.u64(0..3_000);
                self.at(self.now + wait, Event::Stopped(number, order.run));
            }
            while let Some(leased) = self.begins(number) {
                let run = RunId { id: leased.task.id, token: leased.task.token };
                assert!(self.started.insert(run), "{run} was started twice");
                let outcome = match self.rng.u32(0..100) {
                    0..75 => Outcome::Done(Json::default()),
                    75..85 => Outcome::Error("a failure".into()),
                    85..92 => Outcome::Retry(Micros::from_millis(self.rng.u64(0..5_000)), "later".into()),
                    92..96 => Outcome::Released,
                    _ => Outcome::Failed("for good".into()),
                };
                self.processes[number].runs.insert(run, outcome);
                let long = if self.rng.u32(0..4) == 0 { 90_000 } else { 2_000 };
                let ends = self.now + self.rng.u64(1..long);
                self.at(ends, Event::RunEnds(number, run));
            }
            match self.processes[number].worker.next(now) {
                Next::Send(step) => self.send(number, step),
                Next::Sleep(Some(until)) if until <= now => {}
                Next::Sleep(until) => {
                    let lookup_due = self.lookup_rate(number);
                    if let Some(until) = until.into_iter().chain(lookup_due).min() {
                        let wake = until.saturating_duration_since(self.base).as_millis() as u64 + 1;
                        self.at(wake.max(self.now + 1), Event::Wake(number));
                    }
                    break;
                }
                Next::Done => {
                    self.processes[number].is_dead = true;
                    let wait = self.rng.u64(0..5_000);
                    self.at(self.now + wait, Event::Harm);
                    self.spawn();
                    break;
                }
            }
        }
        self.is_its_own(number);
    }

    /// The task that begins now. A paced one is chosen by an exchange.
    fn begins(&mut self, number: usize) -> Option<Leased> {
        let now = self.instant();
        let Process { worker, choosing, .. } = &mut self.processes[number];
        if worker.pace.ahead.is_some() {
            if choosing.is_none() && !worker.held.leased.is_empty() {
                *choosing = Some(worker.exchange());
            }
            choosing.take_if(|choosing| *choosing <= worker.exchanged())?;
            return worker.start_in_slot(now);
        }
        *choosing = None;
        let leased = worker.start(now)?;
        let run = RunId { id: leased.task.id, token: leased.task.token };
        let is_outside = self.rate.is_some_and(|rate| rate <= self.leased[&run]);
        assert!(!is_outside, "{run} was leased under a rate, and worker {number} starts it without a slot");
        Some(leased)
    }

    /// Sends a look at the rate if it is time for one. When it is next.
    fn lookup_rate(&mut self, number: usize) -> Option<Instant> {
        let now = self.instant();
        let due = self.processes[number].worker.lookup_due(now)?;
        if due > now {
            return Some(due);
        }
        let lookup = self.processes[number].worker.begin_lookup(now);
        let delay = if self.chance(5) { 20_000 } else { self.rng.u64(0..40) };
        if self.chance(5) || self.processes[number].cut_off > self.now {
            self.at(self.now + 10_000, Event::LookupAnswered(number, lookup, None));
        } else {
            self.at(self.now + delay, Event::LookupArrives(number, lookup));
        }
        None
    }

    /// What runs with a token that the worker takes for one in force is leased to it by the store.
    fn is_its_own(&mut self, number: usize) {
        let worker = &self.processes[number].worker;
        let me = worker.identity.worker;
        let in_force = worker.held.running.iter().filter(|(_, run)| !run.over);
        let running: Vec<_> = in_force.map(|(id, run)| (*id, run.token)).collect();
        for (id, token) in running {
            let stored = self.stored(id).unwrap().task;
            assert!(
                stored.state == State::Leased && stored.token == token && stored.worker == Some(me),
                "worker {number} runs {id} ({token}), which is {} ({})",
                stored.state,
                stored.token
            );
        }
    }

    fn stored(&mut self, id: TaskId) -> Option<Stored> {
        let Reply::Tasks(tasks) = self.apply(Command::Read(Read::Tasks(vec![id]))).unwrap() else {
            panic!("another answer")
        };
        tasks.into_iter().next().flatten()
    }

    fn send(&mut self, number: usize, step: Box<Step>) {
        self.steps += 1;
        assert!(Command::Step((*step).clone()).check().is_ok());
        let delay = if self.chance(3) { self.rng.u64(0..40_000) } else { self.rng.u64(0..40) };
        let loses_reply = self.chance(6);
        self.at(self.now + 10_000, Event::TimedOut(number, step.sequence));
        if self.chance(5) {
            let later = self.now + self.rng.u64(0..90_000);
            self.at(later, Event::Arrives(number, step.clone(), true));
        }
        if !self.chance(6) && self.processes[number].cut_off <= self.now {
            self.at(self.now + delay, Event::Arrives(number, step, loses_reply));
        }
    }

    /// When a process is there again, if it stands still.
    fn asleep(&self, number: usize) -> Option<u64> {
        Some(self.processes[number].stalled).filter(|&until| until > self.now)
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Arrives(number, step, loses_reply) => {
                let sequence = step.sequence;
                let reply = match self.apply(Command::Step(*step)) {
                    Ok(Reply::Stepped(stepped)) => Ok(stepped),
                    Ok(other) => panic!("{other:?}"),
                    Err(error) => Err(error),
                };
                for leased in reply.iter().flat_map(|stepped: &Stepped| &stepped.leased) {
                    let run = RunId { id: leased.task.id, token: leased.task.token };
                    self.leased.insert(run, self.now);
                }
                if !loses_reply {
                    let back = self.now + self.rng.u64(0..40);
                    self.at(back, Event::Answered(number, sequence, Box::new(reply)));
                }
            }
            Event::Add(number) => {
                let mut task = NewTask::new(id(number), Json::default());
                task.priority = self.rng.i32(0..2);
                task.key =
                    [None, Some("a"), Some("b")][self.rng.usize(0..3)].map(|key| Key::new(key).unwrap());
                let backoff = Micros::from_millis(500);
                task.policy = Policy::default()
                    .max_attempts(1_000)
                    .backoff(backoff.to_duration(), backoff.to_duration())
                    .into();
                self.apply(Command::Add(Add { tasks: [task].into(), sequence: 0, age: Micros::ZERO }))
                    .unwrap();
                if self.rng.bool() {
                    (0..self.processes.len()).for_each(|number| self.processes[number].worker.notify());
                    (0..self.processes.len()).for_each(|number| self.at(self.now, Event::Wake(number)));
                }
            }
            Event::Operator => {
                if !self.is_calm() {
                    let selector = Selector::ids([id(self.rng.u128(1..60))]);
                    let verb = if self.rng.bool() { Verb::Cancel } else { Verb::Release };
                    let change = ChangeTasks {
                        selector,
                        verb,
                        after: None,
                        watermark: None,
                        limit: 1,
                        dry_run: false,
                    };
                    let _ = self.apply(Command::Change(Change::Tasks(change)));
                    let again = self.now + self.rng.u64(1..30_000);
                    self.at(again, Event::Operator);
                }
            }
            Event::Harm => self.harm(),
            Event::Wake(number)
            | Event::Answered(number, ..)
            | Event::TimedOut(number, _)
            | Event::LookupAnswered(number, ..)
            | Event::RunEnds(number, _)
            | Event::Stopped(number, _)
                if self.processes[number].is_dead || self.asleep(number).is_some() =>
            {
                if let Some(until) = self.asleep(number).filter(|_| !self.processes[number].is_dead) {
                    self.at(until, event);
                }
            }
            Event::Wake(number) => self.drive(number),
            Event::Rate => {
                self.rate = if self.rate.is_none() { Some(self.now) } else { None };
                if !self.is_calm() {
                    let again = self.now + self.rng.u64(1..20_000);
                    self.at(again, Event::Rate);
                }
            }
            Event::LookupArrives(number, lookup) => {
                let found = self.rate.is_some();
                let back = self.now + self.rng.u64(0..40);
                self.at(back, Event::LookupAnswered(number, lookup, Some(found)));
            }
            Event::LookupAnswered(number, lookup, found) => {
                let now = self.instant();
                let worker = &mut self.processes[number].worker;
                match found {
                    Some(found) => worker.finish_lookup(lookup, found, now),
                    None => worker.fail_lookup(lookup, now, 7),
                };
                self.drive(number);
            }
            Event::Answered(number, sequence, reply) => {
                let now = self.instant();
                let worker = &mut self.processes[number].worker;
                match *reply {
                    Ok(stepped) => drop(worker.absorb(sequence, stepped, now)),
                    Err(error) => worker.fail(sequence, &error, now, 7),
                }
                self.drive(number);
            }
            Event::TimedOut(number, sequence) => {
                let error = StateError::new(StateErrorKind::TimedOut, "no answer in time");
                let now = self.instant();
                self.processes[number].worker.fail(sequence, &error, now, 7);
                self.drive(number);
            }
            Event::RunEnds(number, run) => {
                if let Some(outcome) = self.processes[number].runs.remove(&run) {
                    if matches!(outcome, Outcome::Done(_)) {
                        self.done.insert(run);
                    }
                    self.processes[number].worker.ended(run, outcome);
                    self.drive(number);
                }
            }
            Event::Stopped(number, run) => {
                if self.processes[number].runs.remove(&run).is_some() {
                    self.processes[number].worker.ended(run, Outcome::Released);
                    self.drive(number);
                }
            }
        }
    }

    fn harm(&mut self) {
        if self.is_calm() {
            return;
        }
        let live: Vec<_> =
            (0..self.processes.len()).filter(|&number| !self.processes[number].is_dead).collect();
        let number = live[self.rng.usize(0..live.len())];
        match self.rng.u32(0..6) {
            5 => self.processes[number].cut_off = self.now + self.rng.u64(0..90_000),
            0 => {
                self.processes[number].is_dead = true;
                self.spawn();
            }
            1 => {
                let grace = Duration::from_millis(self.rng.u64(0..20_000));
                let by = self.instant() + grace;
                self.processes[number].worker.stop(by);
                self.at(self.now, Event::Wake(number));
            }
            _ => self.processes[number].stalled = self.now + self.rng.u64(0..90_000),
        }
        let again = self.now + self.rng.u64(1..30_000);
        self.at(again, Event::Harm);
    }

    fn is_over(&mut self) -> bool {
        let Ok(Reply::Overview(overview)) = self.apply(Command::Read(Read::Overview)) else { return false };
        use interval_queue_task_contract::Counted;
        let left = |counted| matches!(counted, Counted::Now(state) if !State::is_ended(state));
        !overview.counts.iter().any(|&(_, counted, count)| count > 0 && left(counted))
    }
}

/// Lives through one history; how many runs there were, and how many steps.
fn live(seed: u64) -> (usize, u64) {
    let mut world = World::new(seed);
    for number in 1..60 {
        let when = world.rng.u64(0..300_000);
        world.at(when, Event::Add(number));
    }
    let workers = world.rng.u32(1..5);
    (0..workers).for_each(|_| world.spawn());
    world.at(20_000, Event::Harm);
    world.at(30_000, Event::Operator);
    let first = world.rng.u64(0..60_000);
    world.at(first, Event::Rate);
    while let Some(Reverse((when, _, number))) = world.events.pop() {
        world.now = world.now.max(when);
        if world.is_calm() && world.is_over() {
            break;
        }
        assert!(world.now < END, "seed {seed}: it does not come to an end");
        let event = world.bodies[number].take().unwrap();
        world.happen(event);
    }
    for number in 1..60 {
        let task = world.stored(id(number)).unwrap().task;
        assert!(task.state.is_ended(), "seed {seed}: task {number} is left {}", task.state);
        let last = RunId { id: task.id, token: task.token };
        assert!(task.state != State::Done || world.done.contains(&last), "seed {seed}: {last} was not done");
    }
    (world.started.len(), world.steps)
}

#[test]
fn random_histories_start_each_token_once_and_end_every_task() {
    let mut runs = 0;
    for seed in 0..60 {
        let (started, _) = live(seed);
        runs += started;
    }
    assert!(runs > 60 * 50, "{runs} runs are too few to show anything");
}
