//! One who adds, leases and completes by the commands of a worker, without one.

use std::sync::Arc;

use interval_queue::{
    QueueName, connect,
    contract::Micros,
    task_contract::{
        Add, Command, Completion, Json, Key, Kind, Leased, NewTask, Outcome, Read, Reply, Step, Stepped,
        TaskId, TaskStore, WorkerId,
    },
};
use rand::distr::{Alphanumeric, SampleString};
use uuid::Uuid;

/// The queue of all measurements.
pub(crate) const QUEUE: &str = "bench";

pub(crate) struct Hand {
    store: Arc<dyn TaskStore>,
    queue: QueueName,
    step: Step,
    held: Vec<Completion>,
    /// Whether the last step left something to be done.
    has_more: bool,
}

impl Hand {
    pub(crate) async fn at(url: &str) -> Self {
        let store = connect(url).await.unwrap().tasks().await.unwrap();
        let worker = WorkerId::new(Uuid::now_v7());
        let mut step = Step::first(worker, [Kind::default()], Micros::from_millis(60_000));
        step.sequence = 0;
        let mut hand =
            Self { store, queue: QueueName::new(QUEUE).unwrap(), step, held: Vec::new(), has_more: false };
        hand.step(0).await;
        hand
    }

    /// Adds so many at once, with a payload of so many bytes, and one of some keys each.
    pub(crate) async fn add(&self, count: usize, size: usize, keys: &[&str]) {
        let key = |number: usize| (!keys.is_empty()).then(|| Key::new(keys[number % keys.len()]).unwrap());
        self.add_like(count, size, |number, task| NewTask { key: key(number), ..task }).await;
    }

    /// Adds so many at once, each of which is made of one with a payload of so many bytes.
    pub(crate) async fn add_like(&self, count: usize, size: usize, make: impl Fn(usize, NewTask) -> NewTask) {
        let payload = Json::of(&text(size)).unwrap();
        let task = |number: usize| make(number, NewTask::new(TaskId::new(Uuid::now_v7()), payload.clone()));
        self.apply(Command::Add(Add {
            tasks: (0..count).map(task).collect(),
            sequence: 0,
            age: Micros::ZERO,
        }))
        .await;
    }

    /// Completes what it has and leases as many.
    pub(crate) async fn step(&mut self, want: usize) -> usize {
        self.step.sequence += 1;
        let step = Step {
            want: u32::try_from(want).unwrap(),
            complete: std::mem::take(&mut self.held),
            held: (self.step.sequence == 1).then(Vec::new),
            ..self.step.clone()
        };
        let Reply::Stepped(Stepped { leased, lost, more, .. }) = self.apply(Command::Step(step)).await else {
            panic!("no step")
        };
        assert!(lost.is_empty(), "{lost:?}");
        self.step.acknowledged = self.step.sequence;
        self.has_more = more;
        let done = |Leased { task, .. }| Completion {
            id: task.id,
            token: task.token,
            outcome: Outcome::Done(Json::default()),
        };
        self.held = leased.into_iter().map(done).collect();
        self.held.len()
    }

    /// Has the store do what was left to later steps, such as to let tasks in that were added.
    pub(crate) async fn tidy(&mut self) {
        self.step(0).await;
        while self.has_more {
            self.step(0).await;
        }
    }

    /// The clock of the store.
    pub(crate) async fn clock(&self) -> Micros {
        match self.apply(Command::Read(Read::Clock)).await {
            Reply::Clock(now) => now,
            other => panic!("a look at the clock was answered by {other:?}"),
        }
    }

    pub(crate) async fn apply(&self, command: Command) -> Reply {
        self.store.apply(&self.queue, command).await.unwrap()
    }
}

/// A text that has so many bytes as JSON, and cannot be compressed to far fewer.
pub(crate) fn text(size: usize) -> String {
    Alphanumeric.sample_string(&mut rand::rng(), size.saturating_sub(2))
}
