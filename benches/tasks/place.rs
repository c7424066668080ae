//! A database in a temporary directory, and commands on it.

use std::{path::PathBuf, sync::Arc};

use interval_queue::{
    QueueName, connect,
    contract::Micros,
    task_contract::{
        Add, Command, Json, Kind, Leased, NewTask, Outcome, Reply, Settle, Step, Stepped, TaskId, TaskStore,
        WorkerId,
    },
};
use tempfile::TempDir;
use uuid::Uuid;

/// The length of a text that has a hundred bytes as JSON.
pub(crate) const PAYLOAD: usize = 98;

/// Where the database is; it goes with it.
pub(crate) struct Place {
    _directory: TempDir,
    pub(crate) file: PathBuf,
    pub(crate) url: String,
}

impl Place {
    pub(crate) fn new(is_full: bool) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let durability = if is_full { "full" } else { "relaxed" };
        let file = directory.path().join("tasks.db");
        let url = format!("sqlite:{}?durability={durability}", file.display());
        Self { _directory: directory, file, url }
    }
}

/// One who adds and works.
pub(crate) struct Hand {
    store: Arc<dyn TaskStore>,
    queue: QueueName,
    step: Step,
    held: Vec<Settle>,
}

impl Hand {
    pub(crate) async fn at(url: &str) -> Self {
        let store = connect(url).await.unwrap().tasks().await.unwrap();
        let worker = WorkerId::new(Uuid::now_v7());
        let mut step = Step::first(worker, [Kind::default()], Micros::from_millis(60_000));
        step.sequence = 0;
        let mut hand = Self { store, queue: QueueName::new("bench").unwrap(), step, held: Vec::new() };
        hand.step(0).await;
        hand
    }

    pub(crate) async fn add(&self, count: usize) {
        let payload = Json::of(&"x".repeat(PAYLOAD)).unwrap();
        let tasks = (0..count).map(|_| NewTask::new(TaskId::new(Uuid::now_v7()), payload.clone())).collect();
        self.apply(Command::Add(Add { tasks, age: Micros::ZERO })).await;
    }

    /// Settles what it has and leases as many.
    pub(crate) async fn step(&mut self, want: u32) -> usize {
        self.step.sequence += 1;
        let step = Step {
            want,
            settle: std::mem::take(&mut self.held),
            holding: (self.step.sequence == 1).then(Vec::new),
            ..self.step.clone()
        };
        let Reply::Stepped(Stepped { leased, lost, .. }) = self.apply(Command::Step(step)).await else {
            panic!("no step")
        };
        assert!(lost.is_empty(), "{lost:?}");
        self.step.acknowledged = self.step.sequence;
        let done = |Leased { task, .. }| Settle {
            id: task.id,
            token: task.token,
            outcome: Outcome::Done(Json::default()),
        };
        self.held = leased.into_iter().map(done).collect();
        self.held.len()
    }

    pub(crate) async fn apply(&self, command: Command) -> Reply {
        self.store.apply(&self.queue, command).await.unwrap()
    }
}
