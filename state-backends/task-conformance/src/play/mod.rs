//! A fuzzer of the rules of stored tasks: producers, an operator, workers that crash and stall,
//! lost requests and replies, outages, clock steps, roll-backs. Every command is atomic. After
//! each, all rows are checked against the promises; after the faults, every task must end.
//!
//! A seed and the rules determine a run.

mod command;
mod operator;
pub(crate) mod picture;
mod plan;
mod play_ending;
mod play_within;
mod producer;
mod stage;
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
pub use stage::{Copies, Stage, Within};
use worker::Worker;

/// Maximum length of a run in seconds.
const MAX_RUN_SECONDS: u64 = 40_000;
/// Seconds after the last end within which ended tasks must be deleted.
const DELETE_WITHIN: u64 = 1_200 + 900 + 900;
/// Maximum delay of a request in seconds.
const UNDER_WAY: u64 = 580;
/// Number of last commands that an error reports.
const LAST_COMMANDS: usize = 30;

/// Counts of a run that kept all promises.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Played {
    /// Stored tasks.
    pub tasks: usize,
    /// Runs that workers started.
    pub starts: usize,
    /// Commands that reached the store.
    pub commands: usize,
}

/// A broken promise.
#[derive(Clone, Debug, thiserror::Error)]
#[error("seed {seed}, {at} s: {promise}\n{}", self.notified.join("\n"))]
#[non_exhaustive]
pub struct Broken {
    /// The seed of the run.
    pub seed: u64,
    /// Seconds since the start of the run.
    pub at: u64,
    /// The promise and how it was broken.
    pub promise: String,
    /// The last commands and their replies.
    pub notified: Vec<String>,
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
pub async fn play(seed: u64, stage: &Stage) -> Result<Played, Broken> {
    play_on(QueueName::new(format!("play-{seed}")).expect("a name"), seed, stage).await
}

/// As [`play`], but some runs complete within transactions of an application.
///
/// # Errors
///
/// A promise was broken.
///
/// # Cancel safety
///
/// As [`play`].
#[allow(clippy::missing_panics_doc, clippy::expect_used, reason = "the name is known")]
pub async fn play_within(seed: u64, stage: &Stage, within: Arc<dyn Within>) -> Result<Played, Broken> {
    let queue = QueueName::new(format!("play-{seed}")).expect("a name");
    Play { within: Some(within), ..Play::new(queue, seed, stage.clone()) }.told_of(seed).await
}

pub(crate) async fn play_on(queue: QueueName, seed: u64, stage: &Stage) -> Result<Played, Broken> {
    Play::new(queue, seed, stage.clone()).told_of(seed).await
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
    Birth,
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

struct Play {
    stage: Stage,
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
    picture: Dump,
    judge: Judge,
    commands: usize,
    /// Arrived commands, added to the clock as microseconds: no two arrive at one instant.
    arrived: u64,
    last: VecDeque<(u64, Command, Outcome)>,
}

impl Play {
    fn new(queue: QueueName, seed: u64, stage: Stage) -> Self {
        let mut rng = Rng::with_seed(seed);
        let plan = Plan::of(seed, &mut rng, stage.copies.is_some());
        Self {
            queue,
            judge: Judge::new(plan.only_outages, plan.overlap),
            stage,
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
            picture: Dump::default(),
            commands: 0,
            arrived: 0,
            last: VecDeque::new(),
        }
    }

    async fn told_of(mut self, seed: u64) -> Result<Played, Broken> {
        match self.run().await {
            Ok(()) => Ok(self.played()),
            Err(promise) => Err(Broken { seed, at: self.now, promise, notified: self.notified() }),
        }
    }

    async fn run(&mut self) -> Result<(), String> {
        self.open();
        self.at(0, Event::Produce { first: 0, size: 0, with_edges: true, again: false });
        for _ in 0..self.plan.workers {
            self.at(0, Event::Birth);
        }
        self.at(50, Event::Operate);
        self.at(FAULTS_END, Event::Recover);
        if let Some((copy, back)) = self.plan.roll_back {
            self.at(copy, Event::Copy);
            self.at(back, Event::RollBack);
        }
        while let Some(Reverse((now, order))) = self.due.pop() {
            self.now = now;
            if now > MAX_RUN_SECONDS || self.quiet_since.is_some_and(|since| now > since + DELETE_WITHIN) {
                break;
            }
            if let Some(event) = self.events.remove(&order) {
                self.happen(event).await?;
            }
        }
        self.ending()
    }

    async fn happen(&mut self, event: Event) -> Result<(), String> {
        match event {
            Event::Produce { first, size, with_edges, again } => self.produce(first, size, with_edges, again),
            Event::Arrive(message) => self.arrive(message).await?,
            Event::Answer(message, outcome) => self.answer(message, outcome)?,
            Event::Tick(worker) => self.tick(worker),
            Event::Finish(worker, id, token) => self.finish(worker, id, token),
            Event::EndWithin(worker, completion) => self.end_within(worker, completion).await?,
            Event::Birth => self.birth(self.plan.all_kinds),
            Event::Operate => self.operate(),
            Event::Copy => {
                if let Some(copies) = &self.stage.copies {
                    copies.keep();
                }
            }
            Event::RollBack => self.roll_back().await?,
            Event::Recover => self.recover(),
        }
        let is_quiet = !self.has_faults && self.producer.is_done() && self.picture.rows().all(|x| x.notified);
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
            let at = self.now + self.rng.u64(0..=UNDER_WAY);
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
        let dry = match command::dry(&message.command) {
            Some(dry) => Some(self.carry_out(dry).await?),
            None => None,
        };
        let outcome = self.carry_out(message.command.clone()).await?;
        if let Some(dry) = dry
            && dry != outcome
        {
            return Err(format!("T9: the dry run said {dry:?}, and the real one {outcome:?}"));
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
            self.stage.store.apply(&self.queue, command.clone()).await.map_err(|error| error.kind());
        self.commands += 1;
        if self.last.len() >= LAST_COMMANDS {
            self.last.pop_front();
        }
        self.last.push_back((self.now, command.clone(), outcome.clone()));
        let after = self.look().await?;
        self.judge.command(Duration::from_secs(self.now), &self.picture, &after, &command, &outcome)?;
        self.picture = after;
        Ok(outcome)
    }

    fn set_clock(&self) {
        self.stage.set_clock(self.plan.clock(self.now) + Micros::new(self.arrived));
    }

    async fn look(&self) -> Result<Dump, String> {
        picture::look(&*self.stage.store, &self.queue)
            .await
            .map_err(|error| format!("a look failed: {error}"))
    }

    async fn roll_back(&mut self) -> Result<(), String> {
        if let Some(copies) = &self.stage.copies {
            copies.bring_back();
            self.picture = self.look().await?;
            self.judge.rolled_back(&self.picture);
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

    fn played(&self) -> Played {
        Played { tasks: self.judge.tasks(), starts: self.judge.starts(), commands: self.commands }
    }

    fn notified(&self) -> Vec<String> {
        let notified =
            self.last.iter().map(|(at, command, outcome)| format!("{at} s: {command:?}\n    -> {outcome:?}"));
        notified.collect()
    }
}

impl fmt::Debug for Play {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Play").field("plan", &self.plan).field("now", &self.now).finish_non_exhaustive()
    }
}
