//! The rate store: records, a lock and a clock.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use interval_queue_contract::{
    Changes, Command, QueueName, Reading, Record, Reply, SharedState, StateError, rules,
};

use crate::{clock::tokio_clock, watchers::Watchers};

/// Queues in the memory of this process. A clone is a handle to the same memory.
///
/// The clock is [`tokio::time::Instant`] and starts at one second. If a test pauses tokio's time,
/// slots follow the virtual time. [`MemoryState::with_clock`] takes any other clock.
///
/// # Cancel safety
///
/// Commands never await: once its future is polled, a command has completed.
#[derive(Clone)]
pub struct MemoryState {
    shared: Arc<Shared>,
}

struct Shared {
    clock: Box<dyn Fn() -> Reading + Send + Sync>,
    records: Mutex<BTreeMap<QueueName, Record>>,
    watchers: Watchers,
}

impl MemoryState {
    /// An empty store on tokio's clock.
    pub fn new() -> Self {
        Self::with_clock(tokio_clock())
    }

    /// An empty store on `clock`, which is read once per command, under the lock.
    ///
    /// Start the clock above zero: earlier instants are indistinguishable from zero.
    pub fn with_clock(clock: impl Fn() -> Reading + Send + Sync + 'static) -> Self {
        Self {
            shared: Arc::new(Shared {
                clock: Box::new(clock),
                records: Mutex::default(),
                watchers: Watchers::default(),
            }),
        }
    }

    /// The stored record of `queue`. `None`: there is no such queue.
    pub fn snapshot(&self, queue: &QueueName) -> Option<Record> {
        self.records().get(queue).cloned()
    }

    /// Replaces the record of `queue`; `None` deletes it. For tests of lost state.
    pub fn restore(&self, queue: &QueueName, record: Option<Record>) {
        let mut records = self.records();
        match record {
            Some(record) => records.insert(queue.clone(), record),
            None => records.remove(queue),
        };
    }

    /// Ignores a poisoned lock: a panic of the rules loses one queue, as any store may.
    fn records(&self) -> MutexGuard<'_, BTreeMap<QueueName, Record>> {
        self.shared.records.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl SharedState for MemoryState {
    async fn apply(&self, queue: &QueueName, command: Command) -> Result<Reply, StateError> {
        let mut records = self.records();
        let reading = (self.shared.clock)();
        let (name, mut record) = match records.remove_entry(queue) {
            Some((name, record)) => (name, Some(record)),
            None => (queue.clone(), None),
        };
        let revision = |record: &Option<Record>| record.as_ref().map(|record| record.revision);
        let before = revision(&record);
        let reply = rules::apply(&mut record, &reading, &command);
        let is_changed = revision(&record) != before;
        // After an error the record is unchanged.
        if let Some(record) = record {
            records.insert(name, record);
        }
        drop(records);
        if is_changed {
            self.shared.watchers.notify(queue);
        }
        reply
    }

    async fn queues(&self) -> Result<Vec<QueueName>, StateError> {
        Ok(self.records().keys().cloned().collect())
    }

    async fn changes(&self, queue: &QueueName) -> Result<Changes, StateError> {
        Ok(self.shared.watchers.watch(queue))
    }
}

impl Default for MemoryState {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for MemoryState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let records = self.records();
        f.debug_struct("MemoryState").field("records", &*records).finish_non_exhaustive()
    }
}
