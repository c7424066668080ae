//! What the tests say to stored tasks.

use std::{path::Path, time::Duration};

use interval_queue_contract::{Micros, QueueName, StateError};
use interval_queue_sqlite::{Durability, SqliteStore, SqliteTasks};
use interval_queue_task_contract::{
    Add, Command, Json, Kind, Leased, NewTask, Outcome, Page, Read, Reply, Selector, Settle, Step, Stepped,
    Stored, TaskId, TaskStore, WorkerId,
};
use uuid::Uuid;

pub(crate) const LEASE: Micros = Micros::from_millis(60_000);

pub(crate) fn mail() -> QueueName {
    QueueName::new("mail").unwrap()
}

pub(crate) fn id(n: u64) -> TaskId {
    TaskId::new(Uuid::from_u64_pair(7, n))
}

pub(crate) fn worker(n: u64) -> WorkerId {
    WorkerId::new(Uuid::from_u64_pair(9, n))
}

pub(crate) fn task(n: u64) -> NewTask {
    NewTask::new(id(n), Json::new(n.to_string()).unwrap())
}

pub(crate) fn add(tasks: impl IntoIterator<Item = NewTask>) -> Command {
    Command::Add(Add { tasks: tasks.into_iter().collect(), age: Micros::ZERO })
}

pub(crate) async fn open(path: &Path) -> SqliteTasks {
    try_open(path, Duration::from_secs(60)).await.unwrap()
}

pub(crate) async fn try_open(path: &Path, lock_timeout: Duration) -> Result<SqliteTasks, StateError> {
    let builder = SqliteStore::builder(path).durability(Durability::Relaxed).lock_timeout(lock_timeout);
    SqliteTasks::on(&builder.open().await?).await
}

/// A worker that says what it is told to, one step after the other.
pub(crate) struct Hand<'s> {
    store: &'s SqliteTasks,
    step: Step,
}

impl<'s> Hand<'s> {
    pub(crate) fn new(store: &'s SqliteTasks, n: u64) -> Self {
        Self { store, step: Step { sequence: 0, ..Step::first(worker(n), [Kind::default()], LEASE) } }
    }

    pub(crate) async fn try_step(&mut self, settle: Vec<Settle>, want: u32) -> Result<Stepped, StateError> {
        self.step.sequence += 1;
        (self.step.settle, self.step.want) = (settle, want);
        let reply = self.store.apply(&mail(), Command::Step(self.step.clone())).await?;
        let Reply::Stepped(stepped) = reply else { panic!("{reply:?}") };
        self.step.acknowledged = self.step.sequence;
        self.step.holding = None;
        Ok(stepped)
    }

    pub(crate) async fn step(&mut self, settle: Vec<Settle>, want: u32) -> Stepped {
        self.try_step(settle, want).await.unwrap()
    }
}

pub(crate) fn done(leased: &[Leased]) -> Vec<Settle> {
    let done = |leased: &Leased| Settle {
        id: leased.task.id,
        token: leased.task.token,
        outcome: Outcome::Done(leased.payload.clone()),
    };
    leased.iter().map(done).collect()
}

/// All that is stored, with payloads and results.
pub(crate) async fn all(store: &dyn TaskStore, queue: &QueueName) -> Vec<Stored> {
    let (mut all, mut after) = (Vec::new(), None);
    loop {
        let states = interval_queue_task_contract::State::ALL;
        let page = Read::Page { selector: Selector::states(states), after, limit: 1_000, bodies: true };
        match store.apply(queue, Command::Read(page)).await.unwrap() {
            Reply::Page(Page { tasks, next }) => {
                all.extend(tasks);
                after = next;
            }
            other => panic!("{other:?}"),
        }
        if after.is_none() {
            return all;
        }
    }
}
