//! A fuzzer of the rules of stored tasks: producers, an operator, workers that crash and stall,
//! lost requests and replies, outages, clock steps, roll-backs. Every command is atomic. After
//! each, all rows are checked against the promises; after the faults, every task must end.
//!
//! A seed and the rules determine a run.

mod command;
pub(crate) mod dump;
mod final_checks;
mod operator;
mod plan;
mod producer;
mod target;
mod transactional_end;
mod worker;

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap, VecDeque},
    fmt,
    sync::Arc,
    time::Duration,
};

use fastrand::Rng;
use interval_queue_contract::{Micros, QueueName};
use interval_queue_task_contract::{
    Command, Completion, TaskId, Token,
    judge::{Dump, Judge, Outcome},
};

use plan::{FAULTS_END, Plan};
use producer::Producer;
pub use target::{Copies, Target, Within};
use worker::Worker;

/// Maximum length of a run in seconds.
const MAX_RUN_SECONDS: u64 = 40_000;
/// Seconds after the last end within which ended tasks must be deleted.
const PURGE_TIMEOUT: u64 = 1_200 + 900 + 900;
/// Maximum delay of a request in seconds.
const MAX_DELAY: u64 = 580;
/// Number of last commands that an error reports.
const LAST_COMMANDS: usize = 30;

/// Counts of a run that kept all promises.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FuzzReport {
    /// Stored tasks.
    pub tasks: usize,
    /// Runs that workers started.
    pub starts: usize,
    /// Commands that reached the store.
    pub commands: usize,
}

/// A broken promise.
#[derive(Clone, Debug, thiserror::Error)]
#[error("seed {seed}, {at} s: {promise}\n{}", self.last_commands.join("\n"))]
#[non_exhaustive]
pub struct BrokenPromise {
    /// The seed of the run.
    pub seed: u64,
    /// Seconds since the start of the run.
    pub at: u64,
    /// The promise and how it was broken.
    pub promise: String,
    /// The last commands and their replies.
    pub last_commands: Vec<String>,
}

/// Runs the fuzzer with this seed on its own queue.
///
/// # Errors
///
/// A promise was broken.
///
/// # Cancel safety
///
/// A dropped future leaves the run as it is.
#[allow(clippy::missing_panics_doc, clippy::expect_used, reason = "the name is known")]
pub async fn fuzz(seed: u64, target: &Target) -> Result<FuzzReport, BrokenPromise> {
    fuzz_on(QueueName::new(format!("fuzz-{seed}")).expect("a name"), seed, target).await
}

/// As [`fuzz`], but some runs complete within transactions of an application.
///
/// # Errors
///
/// A promise was broken.
///
/// # Cancel safety
///
/// As [`fuzz`].
#[allow(clippy::missing_panics_doc, clippy::expect_used, reason = "the name is known")]
pub async fn fuzz_within(
    seed: u64,
    target: &Target,
    within: Arc<dyn Within>,
) -> Result<FuzzReport, BrokenPromise> {
    let queue = QueueName::new(format!("fuzz-{seed}")).expect("a name");
    Fuzzer { within: Some(within), ..Fuzzer::new(queue, seed, target.clone()) }.report(seed).await
}

pub(crate) async fn fuzz_on(
    queue: QueueName,
    seed: u64,
    target: &Target,
) -> Result<FuzzReport, BrokenPromise> {
    Fuzzer::new(queue, seed, target.clone()).report(seed).await
}

#[derive(Debug)]
enum Event {
    /// The producer adds the batch that starts with this task.
    Produce {
        first: usize,
        size: usize,
        with_edges: bool,
        again: bool,
    },
    /// A request reaches the store.
    Arrive(Message),
    /// A reply reaches its sender.
    Answer(Message, Outcome),
    Tick(usize),
    Finish(usize, TaskId, Token),
    /// An application's transaction completes a run.
    EndWithin(usize, Completion),
    StartWorker,
    Operate,
    /// Copies the store for `RollBack`.
    Copy,
    RollBack,
    Recover,
}

#[derive(Clone, Debug)]
struct Message {
    from: Sender,
    command: Command,
}

#[derive(Clone, Copy, Debug)]
enum Sender {
    Producer { first: usize, size: usize, with_edges: bool },
    Worker { worker: usize, sequence: u64, sent: u64 },
    Schedule,
    Operator,
}

struct Fuzzer {
    target: Target,
    /// `None`: no runs complete within transactions of an application.
    within: Option<Arc<dyn Within>>,
    queue: QueueName,
    plan: Plan,
    rng: Rng,
    now: u64,
    order: u64,
    due: BinaryHeap<Reverse<(u64, u64)>>,
    events: BTreeMap<u64, Event>,
    has_faults: bool,
    quiet_since: Option<u64>,
    producer: Producer,
    workers: Vec<Worker>,
    stored: Dump,
    judge: Judge,
    commands: usize,
    /// Arrived commands, added to the clock as microseconds: no two arrive at one instant.
    arrived: u64,
    last: VecDeque<(u64, Command, Outcome)>,
}

impl Fuzzer {
    fn new(queue: QueueName, seed: u64, target: Target) -> Self {
        let mut rng = Rng::with_seed(seed);
        let plan = Plan::of(seed, &mut rng, target.copies.is_some());
        Self {
            queue,
            judge: Judge::new(plan.only_outages, plan.overlap),
            target,
            within: None,
            plan,
            rng,
            now: 0,
            order: 0,
            due: BinaryHeap::new(),
            events: BTreeMap::new(),
            has_faults: true,
            quiet_since: None,
            producer: Producer::default(),
            workers: Vec::new(),
            stored: Dump::default(),
            commands: 0,
            arrived: 0,
            last: VecDeque::new(),
        }
    }

    async fn report(mut self, seed: u64) -> Result<FuzzReport, BrokenPromise> {
        match self.run().await {
            Ok(()) => Ok(self.counts()),
            Err(promise) => {
                Err(BrokenPromise { seed, at: self.now, promise, last_commands: self.last_commands() })
            }
        }
    }

    async fn run(&mut self) -> Result<(), String> {
        self.open();
        self.at(0, Event::Produce { first: 0, size: 0, with_edges: true, again: false });
        for _ in 0..self.plan.workers {
            self.at(0, Event::StartWorker);
        }
        self.at(50, Event::Operate);
        self.at(FAULTS_END, Event::Recover);
        if let Some((copy, back)) = self.plan.roll_back {
            self.at(copy, Event::Copy);
            self.at(back, Event::RollBack);
        }
        while let Some(Reverse((now, order))) = self.due.pop() {
            self.now = now;
            if now > MAX_RUN_SECONDS || self.quiet_since.is_some_and(|since| now > since + PURGE_TIMEOUT) {
                break;
            }
            if let Some(event) = self.events.remove(&order) {
                self.handle(event).await?;
            }
        }
        self.check_end()
    }

    async fn handle(&mut self, event: Event) -> Result<(), String> {
        match event {
            Event::Produce { first, size, with_edges, again } => self.produce(first, size, with_edges, again),
            Event::Arrive(message) => self.arrive(message).await?,
            Event::Answer(message, outcome) => self.answer(message, outcome)?,
            Event::Tick(worker) => self.tick(worker),
            Event::Finish(worker, id, token) => self.finish(worker, id, token),
            Event::EndWithin(worker, completion) => self.end_within(worker, completion).await?,
            Event::StartWorker => self.start_worker(self.plan.all_kinds),
            Event::Operate => self.operate(),
            Event::Copy => {
                if let Some(copies) = &self.target.copies {
                    copies.keep();
                }
            }
            Event::RollBack => self.roll_back().await?,
            Event::Recover => self.recover(),
        }
        let is_quiet = !self.has_faults && self.producer.is_done() && self.stored.rows().all(|x| x.notified);
        self.quiet_since = if is_quiet { self.quiet_since.or(Some(self.now)) } else { None };
        Ok(())
    }

    fn at(&mut self, at: u64, event: Event) {
        self.order += 1;
        self.due.push(Reverse((at, self.order)));
        self.events.insert(self.order, event);
    }

    /// May lose or duplicate the command.
    fn send(&mut self, from: Sender, command: Command, chance: f64) {
        let chance = self.chance(chance);
        if self.rng.f64() < chance {
            return;
        }
        let message = Message { from, command };
        let at = self.now + self.rng.u64(0..=4);
        self.at(at, Event::Arrive(message.clone()));
        if self.rng.f64() < chance {
            let at = self.now + self.rng.u64(0..=MAX_DELAY);
            self.at(at, Event::Arrive(message));
        }
    }

    fn chance(&self, chance: f64) -> f64 {
        if self.plan.only_outages || !self.has_faults { 0.0 } else { chance }
    }

    async fn arrive(&mut self, message: Message) -> Result<(), String> {
        if self.plan.is_out(self.now) {
            return Ok(());
        }
        self.arrived += 1;
        let dry_run = match command::dry_run(&message.command) {
            Some(dry_run) => Some(self.carry_out(dry_run).await?),
            None => None,
        };
        let outcome = self.carry_out(message.command.clone()).await?;
        if let Some(dry_run) = dry_run
            && dry_run != outcome
        {
            return Err(format!("T9: the dry run returned {dry_run:?}, and the real one {outcome:?}"));
        }
        let is_lost =
            self.rng.f64() < self.chance(if matches!(message.from, Sender::Operator) { 0.0 } else { 0.1 });
        if !is_lost {
            let at = self.now + self.rng.u64(0..=4);
            self.at(at, Event::Answer(message, outcome));
        }
        Ok(())
    }

    async fn carry_out(&mut self, command: Command) -> Result<Outcome, String> {
        self.set_clock();
        let outcome =
            self.target.store.apply(&self.queue, command.clone()).await.map_err(|error| error.kind());
        self.commands += 1;
        if self.last.len() >= LAST_COMMANDS {
            self.last.pop_front();
        }
        self.last.push_back((self.now, command.clone(), outcome.clone()));
        let after = self.dump().await?;
        self.judge.command(Duration::from_secs(self.now), &self.stored, &after, &command, &outcome)?;
        self.stored = after;
        Ok(outcome)
    }

    fn set_clock(&self) {
        self.target.set_clock(self.plan.clock(self.now) + Micros::new(self.arrived));
    }

    async fn dump(&self) -> Result<Dump, String> {
        dump::dump(&*self.target.store, &self.queue).await.map_err(|error| format!("a dump failed: {error}"))
    }

    async fn roll_back(&mut self) -> Result<(), String> {
        if let Some(copies) = &self.target.copies {
            copies.bring_back();
            self.stored = self.dump().await?;
            self.judge.rolled_back(&self.stored);
        }
        Ok(())
    }

    fn answer(&mut self, message: Message, outcome: Outcome) -> Result<(), String> {
        match message.from {
            Sender::Producer { first, size, with_edges } => {
                self.produced(first, size, with_edges, outcome);
                Ok(())
            }
            Sender::Worker { worker, sequence, sent } => {
                self.stepped(worker, sequence, sent, &message.command, outcome)
            }
            Sender::Schedule | Sender::Operator => Ok(()),
        }
    }

    fn counts(&self) -> FuzzReport {
        FuzzReport { tasks: self.judge.tasks(), starts: self.judge.starts(), commands: self.commands }
    }

    fn last_commands(&self) -> Vec<String> {
        let last_commands =
            self.last.iter().map(|(at, command, outcome)| format!("{at} s: {command:?}\n    -> {outcome:?}"));
        last_commands.collect()
    }
}

impl fmt::Debug for Fuzzer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fuzzer").field("plan", &self.plan).field("now", &self.now).finish_non_exhaustive()
    }
}
