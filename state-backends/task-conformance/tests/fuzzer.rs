//! The fuzzer on the memory store.
#![allow(clippy::unwrap_used, reason = "a test that fails says so")]

use std::{
    env,
    sync::{Arc, Mutex},
};

use async_trait::async_trait;
use interval_queue_conformance::ManualClock;
use interval_queue_contract::{QueueName, StateError};
use interval_queue_memory::{MemoryCopy, MemoryTasks};
use interval_queue_task_conformance::fuzzer::{Copies, Target, Within, fuzz, fuzz_within};
use interval_queue_task_contract::{Completed, Completion, WorkerId};

struct Kept(MemoryTasks, Mutex<MemoryCopy>);

impl Copies for Kept {
    fn keep(&self) {
        *self.1.lock().unwrap() = self.0.copy();
    }

    fn bring_back(&self) {
        self.0.restore(self.1.lock().unwrap().clone());
    }
}

struct Transactions(MemoryTasks);

#[async_trait]
impl Within for Transactions {
    async fn end(
        &self,
        queue: &QueueName,
        worker: WorkerId,
        completion: &Completion,
    ) -> Result<Completed, StateError> {
        self.0.complete_within(queue, worker, completion)
    }
}

fn target(budget: u32) -> (Target, MemoryTasks) {
    let clock = ManualClock::new();
    let reading = clock.clone();
    let store = MemoryTasks::with_maintenance_budget(move || reading.now(), budget);
    let copies = Arc::new(Kept(store.clone(), Mutex::default()));
    (Target { store: Arc::new(store.clone()), clock, copies: Some(copies) }, store)
}

fn number(name: &str, default: u64) -> u64 {
    env::var(name).map_or(default, |text| text.parse().unwrap())
}

/// Seeds that once broke a promise which the first hundred keep: tokens that fell after a roll-back and a step
/// of the clock, a line that stood behind an ordered task that was cancelled, a task that held its key and waited for
/// upstreams, a second run of a task that was to run once.
const REGRESSION_SEEDS: &[u64] = &[10_427, 11_707, 11_623, 13_603, 21_587, 27_859, 41_573];

#[tokio::test]
async fn every_promise_holds_for_every_seed() {
    every_promise_holds(false).await;
}

#[tokio::test]
async fn every_promise_holds_when_runs_end_within_transactions() {
    every_promise_holds(true).await;
}

async fn every_promise_holds(is_within: bool) {
    let first = number("INTERVAL_QUEUE_SEED", 0);
    let mut total = (0, 0, 0);
    let mut broken = Vec::new();
    let seeds = number("INTERVAL_QUEUE_PLAYS", 100);
    for seed in (first..first + seeds).chain(if seeds > 1 { REGRESSION_SEEDS } else { &[] }.iter().copied()) {
        let budget = [5, 200][(seed / 4 % 2) as usize];
        let (target, store) = target(budget);
        let report = if is_within {
            fuzz_within(seed, &target, Arc::new(Transactions(store))).await
        } else {
            fuzz(seed, &target).await
        };
        match report {
            Ok(report) => {
                total = (total.0 + report.tasks, total.1 + report.starts, total.2 + report.commands);
            }
            Err(error) => broken.push(error),
        }
    }
    println!("{total:?}");
    for error in &broken {
        println!("seed {} at {}: {:.300}", error.seed, error.at, error.promise);
    }
    if seeds == 1
        && let Some(error) = broken.first()
    {
        println!("{error}");
    }
    assert!(broken.is_empty(), "{} of {seeds} seeds break a promise", broken.len());
}
