//! Prepares a queue: runs commands on the memory and records them for the store.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use interval_queue_contract::{Micros, QueueName, StateError};
use interval_queue_memory::MemoryTasks;
use interval_queue_task_contract::{
    Command, Kind, Leased, NewTask, Reply, Step, Stepped, TaskId, TaskStore, WorkerId,
};
use uuid::Uuid;

use crate::client::{seconds, unique};

pub(super) const LEASE: Micros = Micros::from_millis(60_000);
const START: Micros = Micros::from_millis(1_700_000_000_000);

#[allow(clippy::expect_used, reason = "the name is short")]
pub(super) fn queue() -> QueueName {
    QueueName::new(format!("interleaving-{}", unique())).expect("a name")
}

pub(super) fn id(n: u64) -> TaskId {
    TaskId::new(Uuid::from_u64_pair(7, n))
}

#[derive(Clone)]
pub(super) struct Memory {
    pub(super) store: MemoryTasks,
    pub(super) queue: QueueName,
    clock: Arc<AtomicU64>,
}

impl Memory {
    pub(super) fn new() -> Self {
        let clock = Arc::new(AtomicU64::new(START.get()));
        let reading = clock.clone();
        let store = MemoryTasks::with_clock(move || Micros::new(reading.load(Ordering::Relaxed)));
        Self { store, queue: queue(), clock }
    }

    pub(super) fn set_clock(&self, to: Micros) {
        self.clock.store(to.get(), Ordering::Relaxed);
    }

    pub(super) fn now(&self) -> Micros {
        Micros::new(self.clock.load(Ordering::Relaxed))
    }

    pub(super) async fn apply(&self, command: &Command) -> Result<Reply, StateError> {
        self.store.apply(&self.queue, command.clone()).await
    }
}

/// The recorded commands with their instants.
pub(super) struct Setup {
    pub(super) commands: Vec<(Micros, Command)>,
    /// The instant of the interleaving.
    pub(super) now: Micros,
}

/// A memory that records its commands.
pub(super) struct Preparation {
    memory: Memory,
    pub(super) setup: Setup,
}

impl Preparation {
    pub(super) fn new() -> Self {
        let memory = Memory::new();
        let setup = Setup { commands: Vec::new(), now: memory.now() };
        Self { memory, setup }
    }

    /// Records and applies a command that must succeed.
    #[allow(clippy::expect_used, reason = "the rules are known")]
    pub(super) async fn run(&mut self, command: Command) -> Reply {
        self.setup.commands.push((self.memory.now(), command.clone()));
        self.memory.apply(&command).await.expect("a command of the preparation")
    }

    pub(super) async fn add(&mut self, tasks: impl IntoIterator<Item = NewTask>) {
        let _ = self.run(super::interleavings::add(tasks)).await;
    }

    pub(super) fn pass(&mut self, time: u64) {
        self.setup.now = self.memory.now() + seconds(time);
        self.memory.set_clock(self.setup.now);
    }

    pub(super) async fn step(&mut self, step: Step) -> Stepped {
        match self.run(Command::Step(step)).await {
            Reply::Stepped(stepped) => stepped,
            _ => Stepped::default(),
        }
    }

    pub(super) async fn lease(&mut self, worker: &mut PreparedWorker, want: u32) -> Vec<Leased> {
        let step = Step { want, ..worker.step() };
        self.step(step).await.leased
    }
}

pub(super) struct PreparedWorker {
    pub(super) id: WorkerId,
    sequence: u64,
}

impl PreparedWorker {
    pub(super) fn new(n: u64) -> Self {
        Self { id: WorkerId::new(Uuid::from_u64_pair(9, n)), sequence: 0 }
    }

    /// The next `Step`; all earlier ones were answered.
    pub(super) fn step(&mut self) -> Step {
        self.sequence += 1;
        Step {
            sequence: self.sequence,
            acknowledged: self.sequence - 1,
            held: (self.sequence == 1).then(Vec::new),
            ..Step::first(self.id, [Kind::default()], LEASE)
        }
    }
}
