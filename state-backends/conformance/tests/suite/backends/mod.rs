//! Small backends over a map: one that is right, one that is not atomic, and others that are wrong otherwise.
#![allow(clippy::disallowed_methods, reason = "a test backend with a clock of its own")]

pub(crate) mod wrong_backend;

use std::{
    collections::HashMap,
    sync::Mutex,
    time::{Duration, Instant},
};

use interval_queue_contract::{
    Command, Micros, QueueName, Reading, Record, Reply, SharedState, StateError, rules,
};

#[derive(Debug)]
struct Clock(Instant);

impl Default for Clock {
    fn default() -> Self {
        Self(Instant::now())
    }
}

impl Clock {
    fn reading(&self) -> Reading {
        Reading::of_clock(Micros::from_duration(Duration::from_secs(1) + self.0.elapsed()))
    }
}

/// Locks, applies, unlocks.
#[derive(Debug, Default)]
pub(crate) struct Inline {
    clock: Clock,
    records: Mutex<HashMap<QueueName, Option<Record>>>,
}

#[async_trait::async_trait]
impl SharedState for Inline {
    async fn apply(&self, queue: &QueueName, command: Command) -> Result<Reply, StateError> {
        let mut records = self.records.lock().unwrap();
        rules::apply(records.entry(queue.clone()).or_default(), &self.clock.reading(), &command)
    }
}

/// Reads, applies and writes back, with nothing that keeps others from doing so in between.
#[derive(Debug, Default)]
pub(crate) struct Racy {
    clock: Clock,
    records: Mutex<HashMap<QueueName, Option<Record>>>,
}

#[async_trait::async_trait]
impl SharedState for Racy {
    async fn apply(&self, queue: &QueueName, command: Command) -> Result<Reply, StateError> {
        let mut record = self.records.lock().unwrap().get(queue).cloned().flatten();
        tokio::time::sleep(Duration::from_millis(1)).await;
        let reply = rules::apply(&mut record, &self.clock.reading(), &command)?;
        self.records.lock().unwrap().insert(queue.clone(), record);
        Ok(reply)
    }
}
