//! A worker whose steps a test sets, and helpers for tests of stores.
#![allow(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    clippy::missing_errors_doc,
    reason = "tests fail by panicking"
)]
#![allow(missing_docs, missing_debug_implementations, reason = "for tests of stores")]

use interval_queue_contract::{Micros, QueueName, StateError};
use interval_queue_task_contract::{
    Add, Command, Completion, Json, Key, Kind, Leased, NewEdge, NewTask, Order, Outcome, Page, Read, Reply,
    Selector, State, Step, Stepped, Stored, TaskId, TaskStore, Unique, Until, WorkerId,
};
use uuid::Uuid;

pub const LEASE: Micros = Micros::from_millis(60_000);

/// The queue of a [`Hand`].
pub fn mail() -> QueueName {
    QueueName::new("mail").unwrap()
}

pub fn id(n: u64) -> TaskId {
    TaskId::new(Uuid::from_u64_pair(7, n))
}

pub fn worker(n: u64) -> WorkerId {
    WorkerId::new(Uuid::from_u64_pair(9, n))
}

pub fn task(n: u64) -> NewTask {
    NewTask::new(id(n), Json::new(n.to_string()).unwrap())
}

pub fn add(tasks: impl IntoIterator<Item = NewTask>) -> Command {
    Command::Add(Add { tasks: tasks.into_iter().collect(), sequence: 0, age: Micros::ZERO })
}

/// An add of a flow: tasks with unique names and keys, each waiting for the one before.
pub fn flow(count: u64) -> Command {
    let named = |n: u64| NewTask {
        unique: Some(Unique { name: Key::new(format!("name {n}")).unwrap(), until: Until::Ended }),
        key: Some(Key::new(format!("key {n}")).unwrap()),
        edges: n.checked_sub(1).map(|up| NewEdge::from(id(up))).into_iter().collect(),
        ..task(n)
    };
    add((0..count).map(named))
}

/// Sizes of flows whose adds must cost linear work.
pub const FLOWS: [u64; 4] = [2_000, 4_000, 8_000, 16_000];

/// Checks that `work`, measured size by size, is linear in [`FLOWS`].
pub fn assert_linear(work: impl IntoIterator<Item = u64>, what: &str) {
    let mut most = u64::MAX;
    for (count, work) in FLOWS.into_iter().zip(work) {
        assert!(work > 0 && work <= most, "{count} tasks: {work} {what}, and {most} may be");
        most = work * 2 + work / 10;
    }
}

/// A worker whose steps a test sets.
pub struct Hand<'s> {
    store: &'s dyn TaskStore,
    pub step: Step,
}

impl<'s> Hand<'s> {
    pub fn new(store: &'s dyn TaskStore, n: u64) -> Self {
        Self::serving(store, n, "default")
    }

    pub fn serving(store: &'s dyn TaskStore, n: u64, kind: &str) -> Self {
        let kind = Kind::new(kind).unwrap();
        Self { store, step: Step { sequence: 0, ..Step::first(worker(n), [kind], LEASE) } }
    }

    pub async fn try_step(&mut self, complete: Vec<Completion>, want: u32) -> Result<Stepped, StateError> {
        self.step.sequence += 1;
        (self.step.complete, self.step.want) = (complete, want);
        let reply = self.store.apply(&mail(), Command::Step(self.step.clone())).await?;
        let Reply::Stepped(stepped) = reply else { panic!("{reply:?}") };
        self.step.acknowledged = self.step.sequence;
        self.step.held = None;
        Ok(stepped)
    }

    pub async fn step(&mut self, complete: Vec<Completion>, want: u32) -> Stepped {
        self.try_step(complete, want).await.unwrap()
    }
}

/// Completes all runs with their payloads as results.
pub fn done(leased: &[Leased]) -> Vec<Completion> {
    ended(leased, |leased| Outcome::Done(leased.payload.clone()))
}

pub fn ended(leased: &[Leased], how: impl Fn(&Leased) -> Outcome) -> Vec<Completion> {
    let complete =
        |leased: &Leased| Completion { id: leased.task.id, token: leased.task.token, outcome: how(leased) };
    leased.iter().map(complete).collect()
}

/// All tasks by id, with payloads and results.
pub async fn all(store: &dyn TaskStore, queue: &QueueName) -> Vec<Stored> {
    let (mut all, mut after) = (Vec::new(), None);
    loop {
        let page = Read::Page {
            selector: Selector::states(State::ALL),
            after: after.unwrap_or(Order::Oldest.start()),
            limit: 1_000,
            bodies: true,
        };
        match store.apply(queue, Command::Read(page)).await.unwrap() {
            Reply::Page(Page { tasks, next, .. }) => {
                all.extend(tasks);
                after = next;
            }
            other => panic!("{other:?}"),
        }
        if after.is_none() {
            all.sort_by_key(|stored: &Stored| stored.task.id);
            return all;
        }
    }
}
