//! A plan of stored tasks: who adds what, how each run ends, what operators do, and what goes
//! wrong.

use std::{fmt, time::Duration};

use fastrand::Rng;
use interval_queue_task_contract::Verb;

use super::plan_generator;
use crate::{Fault, plan::Event as Trouble};

/// What plans are to be like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// How many workers there are at any time, each in a process of its own.
    pub workers: usize,
    /// How many tasks are added.
    pub tasks: usize,
    /// What can go wrong.
    pub faults: Vec<Fault>,
    /// How many faults there are for ten tasks.
    pub faults_per_ten_tasks: usize,
    /// The interval of the queue; none: for some seeds one between 20 and 200 ms.
    pub interval: Option<Duration>,
    /// The lease of the workers; none: one between 1 and 3 s, and 12 s where the store is all that fails.
    pub lease: Option<Duration>,
}

impl Shape {
    /// A few workers, a few tasks, all faults.
    pub fn small() -> Self {
        Self {
            workers: 3,
            tasks: 10,
            faults: Fault::ALL.to_vec(),
            faults_per_ten_tasks: 5,
            interval: None,
            lease: None,
        }
    }
}

/// All that happens in one simulation.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// It was made from this.
    pub seed: u64,
    /// The lease of each worker.
    pub lease: Duration,
    /// The time between the starts of two runs.
    pub interval: Option<Duration>,
    /// How many tasks are leased at once.
    pub max_running: Option<u32>,
    /// How many of one key.
    pub key_limit: u32,
    /// How long a process waits for an answer.
    pub time_out: Duration,
    /// Whether workers are told that something has changed.
    pub wakes: bool,
    /// The workers.
    pub workers: Vec<WorkerPlan>,
    /// The tasks.
    pub tasks: Vec<TaskPlan>,
    /// What happens, in the order of time.
    pub events: Vec<Timed>,
}

/// What is lasting about a worker.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkerPlan {
    /// The kinds that it serves.
    pub kinds: Vec<&'static str>,
    /// How many tasks it runs at once.
    pub jobs: u32,
    /// Maximum number of tasks that it leases ahead of free permits.
    pub prefetch: u32,
    /// How much faster than true time its clock runs, in parts per million.
    pub drift: i32,
    /// The longest ordinary delay of its requests and of the replies to them.
    pub delay: (Duration, Duration),
}

/// A task. Others are named by their places in [`Plan::tasks`].
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "as in the task itself")]
pub struct TaskPlan {
    pub kind: &'static str,
    pub priority: i32,
    pub key: Option<&'static str>,
    pub ordered: bool,
    pub unique: Option<(&'static str, interval_queue_task_contract::Until)>,
    pub on_conflict: interval_queue_task_contract::OnConflict,
    pub delay: Option<Duration>,
    pub deadline: Option<Duration>,
    pub policy: interval_queue_task_contract::Policy,
    /// What it waits for.
    pub after: Vec<(usize, interval_queue_task_contract::OnFailure)>,
    /// How its runs go, one after the other; the last one is that of all further runs.
    pub runs: Vec<Run>,
}

/// How one run of a handler goes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Run {
    /// How long it takes.
    pub takes: Duration,
    /// Whether it says in between how far it is.
    pub tells: bool,
    /// Whether it ends when it is told to.
    pub listens: bool,
    /// How it ends.
    pub ends: Ends,
}

/// How a run ends.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs, reason = "the variants say it")]
pub enum Ends {
    Done,
    Error,
    Permanent,
    Retry(Duration),
    Panic,
    Released,
    /// It never does, unless it is told to.
    Hangs,
    /// It goes on for so long after it was told to end, or its lease has ended.
    Strays(Duration),
}

/// Something that happens at a given time.
#[derive(Clone, Debug, PartialEq)]
pub struct Timed {
    /// Since the beginning, in true time.
    pub at: Duration,
    /// What.
    pub event: Event,
    /// Which fault it is; none for a batch of tasks.
    pub fault: Option<Fault>,
}

/// Something that happens. Numbers in `worker` are places in [`Plan::workers`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the variants say it")]
pub enum Event {
    Add(Batch),
    Operate {
        worker: usize,
        operation: Operation,
    },
    /// A worker is asked to stop; another one begins in its process when it has.
    Retire {
        worker: usize,
    },
    /// A fault that befalls processes, the network or the store: a worker is what is called a shard there.
    Trouble(Trouble),
}

/// Tasks that are added together, in one process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// Where.
    pub worker: usize,
    /// Which, by their places in [`Plan::tasks`].
    pub tasks: Vec<usize>,
}

/// What an operator does.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the variants say it")]
pub enum Operation {
    Task(Verb, usize),
    Key(Verb, &'static str),
    Unique(Verb, &'static str),
    State(Verb, interval_queue_task_contract::State),
    Pause,
    Resume,
    PauseKind(&'static str, bool),
    KeyLimit(&'static str, Option<u32>),
    Limits {
        max_running: Option<u32>,
        key_limit: u32,
    },
    /// The number selects one of the stored workers.
    DeclareLost(usize),
    Hold(Duration),
    /// Gives the queue a rate or another one, or removes it.
    Rate(Option<Duration>),
}

impl Plan {
    /// The plan of that shape that a seed gives.
    pub fn make(seed: u64, shape: &Shape) -> Self {
        plan_generator::plan(&mut Rng::with_seed(seed), seed, shape)
    }

    /// How often each fault happens.
    pub fn faults(&self) -> impl Iterator<Item = (Fault, u64)> + use<'_> {
        Fault::ALL.into_iter().filter_map(|fault| {
            let count = self.events.iter().filter(|timed| timed.fault == Some(fault)).count();
            let drifting = self.workers.iter().filter(|worker| worker.drift != 0).count();
            let count = if fault == Fault::Drift { drifting } else { count };
            (count > 0).then_some((fault, count as u64))
        })
    }

    /// Whether the only faults are an unreachable store and steps of its clock forward, and no worker is declared lost.
    /// Then no task may be taken from a living worker, if its lease is long beside the time between two tries.
    pub fn only_outages(&self) -> bool {
        let is_one = |timed: &Timed| match &timed.event {
            Event::Trouble(Trouble::ClockStep { micros }) => *micros >= 0,
            Event::Trouble(trouble) => matches!(trouble, Trouble::Outage { .. } | Trouble::Restart),
            Event::Operate { operation: Operation::DeclareLost(_), .. } => false,
            _ => true,
        };
        // Each costs up to a quarter of a lease; several may come within one.
        let faults = self.events.iter().filter(|timed| matches!(timed.event, Event::Trouble(_))).count();
        self.lease >= plan_generator::LONG_LEASE && faults < 4 && self.events.iter().all(is_one)
    }

    pub(super) fn steps_back(&self) -> i64 {
        let back = self.events.iter().map(|timed| match timed.event {
            Event::Trouble(Trouble::ClockStep { micros }) => micros.min(0),
            _ => 0,
        });
        -back.sum::<i64>()
    }

    /// Whether nothing goes wrong at all.
    pub fn is_faultless(&self) -> bool {
        let punctual = |worker: &WorkerPlan| {
            worker.drift == 0 && worker.delay.0 + worker.delay.1 <= Duration::from_millis(2)
        };
        self.workers.iter().all(punctual) && self.events.iter().all(|timed| timed.fault.is_none())
    }

    /// How many tasks are added.
    pub fn added(&self) -> usize {
        let added = self.events.iter().map(|timed| match &timed.event {
            Event::Add(batch) => batch.tasks.len(),
            _ => 0,
        });
        added.sum()
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "seed {}: lease {:?}, interval {:?}, max_running {:?}, key_limit {}, time-out {:?}, {}",
            self.seed,
            self.lease,
            self.interval,
            self.max_running,
            self.key_limit,
            self.time_out,
            if self.wakes { "wake-ups" } else { "no wake-ups" }
        )?;
        for (number, worker) in self.workers.iter().enumerate() {
            writeln!(f, "  worker {number}: {worker:?}")?;
        }
        let added = |timed: &Timed| match &timed.event {
            Event::Add(batch) => batch.tasks.clone(),
            _ => Vec::new(),
        };
        for number in self.events.iter().flat_map(added) {
            writeln!(f, "  t{number}: {:?}", self.tasks[number])?;
        }
        for Timed { at, event, .. } in &self.events {
            writeln!(f, "{:>12.3} ms  {event:?}", at.as_secs_f64() * 1000.0)?;
        }
        Ok(())
    }
}
