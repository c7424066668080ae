//! The task store: rows, a lock and a clock.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use interval_queue_contract::{Changes, Micros, QueueName, StateError};
use interval_queue_task_contract::{Command, Completed, Completion, Reply, TaskStore, WorkerId, rules};

use crate::{clock::wall_clock, watchers::Watchers};

mod rows;
mod tables;

#[doc(hidden)]
pub use tables::{Tables, Written};

/// Tasks in the memory of this process. A clone is a handle to the same memory.
///
/// The clock starts with the host's and follows [`tokio::time::Instant`]. If a test pauses tokio's
/// time, delays and leases follow the virtual time. [`MemoryTasks::with_clock`] takes any other
/// clock.
///
/// # Cancel safety
///
/// Commands never await: once its future is polled, a command has completed.
#[derive(Clone)]
pub struct MemoryTasks {
    shared: Arc<Shared>,
}

struct Shared {
    clock: Box<dyn Fn() -> Micros + Send + Sync>,
    /// `None`: the default of the rules.
    budget: Option<u32>,
    queues: Mutex<BTreeMap<QueueName, Tables>>,
    watchers: Watchers,
}

impl MemoryTasks {
    /// An empty store.
    pub fn new() -> Self {
        Self::with_clock(wall_clock())
    }

    /// An empty store on `clock`, which is read once per command, under the lock.
    pub fn with_clock(clock: impl Fn() -> Micros + Send + Sync + 'static) -> Self {
        Self::build(Box::new(clock), None)
    }

    /// An empty store with a maintenance budget of `budget` per poll. For tests of the rules.
    #[doc(hidden)]
    pub fn with_maintenance_budget(clock: impl Fn() -> Micros + Send + Sync + 'static, budget: u32) -> Self {
        Self::build(Box::new(clock), Some(budget))
    }

    fn build(clock: Box<dyn Fn() -> Micros + Send + Sync>, budget: Option<u32>) -> Self {
        let (queues, watchers) = (Mutex::default(), Watchers::default());
        Self { shared: Arc::new(Shared { clock, budget, queues, watchers }) }
    }

    /// A copy of all rows for [`restore`](Self::restore). For tests of a store that is rolled back.
    pub fn copy(&self) -> MemoryCopy {
        MemoryCopy(self.queues().clone())
    }

    /// Replaces all rows by a copy.
    pub fn restore(&self, copy: MemoryCopy) {
        *self.queues() = copy.0;
    }

    /// Completes a run as if within an application's transaction. For tests of the rules.
    #[doc(hidden)]
    #[allow(clippy::missing_errors_doc, reason = "those of the rule")]
    pub fn complete_within(
        &self,
        queue: &QueueName,
        worker: WorkerId,
        completion: &Completion,
    ) -> Result<Completed, StateError> {
        self.carry_out(queue, |tables, now| rules::complete_within(tables, now, worker, completion))
    }

    fn carry_out<T>(
        &self,
        queue: &QueueName,
        work: impl FnOnce(&mut Tables, Micros) -> Result<T, StateError>,
    ) -> Result<T, StateError> {
        let mut queues = self.queues();
        let now = (self.shared.clock)();
        let is_there = queues.contains_key(queue);
        let tables = queues.entry(queue.clone()).or_default();
        let done = work(tables, now);
        let notifies = tables.finish(done.is_ok());
        if !is_there && tables.is_empty() {
            queues.remove(queue);
        }
        drop(queues);
        if notifies {
            self.shared.watchers.notify(queue);
        }
        done
    }

    fn queues(&self) -> MutexGuard<'_, BTreeMap<QueueName, Tables>> {
        self.shared.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A copy of all rows of a store.
#[derive(Clone, Debug, Default)]
pub struct MemoryCopy(BTreeMap<QueueName, Tables>);

#[async_trait]
impl TaskStore for MemoryTasks {
    async fn apply(&self, queue: &QueueName, command: Command) -> Result<Reply, StateError> {
        self.carry_out(queue, |tables, now| match self.shared.budget {
            None => rules::apply(tables, now, &command),
            Some(budget) => rules::apply_with_budget(tables, now, budget, &command),
        })
    }

    async fn queues(&self) -> Result<Vec<QueueName>, StateError> {
        Ok(MemoryTasks::queues(self).keys().cloned().collect())
    }

    async fn changes(&self, queue: &QueueName) -> Result<Changes, StateError> {
        Ok(self.shared.watchers.watch(queue))
    }
}

impl Default for MemoryTasks {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for MemoryTasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryTasks").field("queues", &self.queues().keys()).finish_non_exhaustive()
    }
}
