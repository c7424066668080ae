//! Stores that are wrong in one thing, made of the memory's tables.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use interval_queue_conformance::ManualClock;
use interval_queue_contract::{Changes, Micros, QueueName, StateError, StateErrorKind};
use interval_queue_memory::Tables;
use interval_queue_task_contract::{Add, Command, Reply, Task, TaskStore, rules};

use crate::rows::Flawed;

/// What is wrong with a store, or with the rules as they find it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    Nothing,
    /// Any token will do.
    NoFence,
    /// An ended task keeps its place of the key.
    LeaksKeys,
    /// Now and then something is not counted.
    LosesCounts,
    /// A look at what is ready is as old as the look before.
    RacesForLeases,
    /// What a refused command has written stays.
    UndoesNothing,
    /// The least urgent comes first.
    ReversesOrder,
    /// The positions of tasks are not stored, so that the ids break ties.
    ForgetsPositions,
    /// Each third edge is not stored.
    ForgetsEdges,
    HandsNothingOver,
    NotifiesNobody,
    SwapsNobody,
    ForgivesNoSilence,
    /// Silence counts for little also while no lease can be lost by it.
    ForgivesAllSilence,
    ForgetsWorkers,
    PurgesInputs,
    IgnoresHoldings,
    ObeysLateSteps,
    AddsLate,
    /// A run that was asked to stop ends as if it was not.
    EndsAsUsual,
    /// How long tasks wait is not counted.
    LosesTimes,
    KeepsTimes,
    /// The end of a run is no event.
    LosesEvents,
    KeepsEvents,
}

/// A store with a flaw.
#[derive(Debug)]
pub(crate) struct Wrong {
    flaw: Flaw,
    clock: ManualClock,
    queues: Mutex<BTreeMap<QueueName, Kept>>,
}

#[derive(Debug, Default)]
struct Kept {
    tables: Tables,
    last_ready: Vec<Task>,
    counted: u64,
    /// What the last command asked of the tables: calls, and rows that they found.
    cost: (u64, u64),
}

impl Wrong {
    pub(crate) fn new(flaw: Flaw, clock: ManualClock) -> Self {
        Self { flaw, clock, queues: Mutex::default() }
    }

    /// What the last command on this queue asked of the tables.
    pub(crate) fn cost(&self, queue: &QueueName) -> (u64, u64) {
        self.kept()[queue].cost
    }

    fn kept(&self) -> MutexGuard<'_, BTreeMap<QueueName, Kept>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl TaskStore for Wrong {
    async fn apply(&self, queue: &QueueName, mut command: Command) -> Result<Reply, StateError> {
        let mut queues = self.kept();
        let kept = queues.entry(queue.clone()).or_default();
        let mut rows = Flawed {
            tables: &mut kept.tables,
            flaw: self.flaw,
            completed: Default::default(),
            sequence: 0,
            last_ready: &mut kept.last_ready,
            counted: &mut kept.counted,
            calls: 0,
            found: 0,
        };
        match &mut command {
            Command::Step(step) => {
                rows.sequence = step.sequence;
                let completed =
                    step.complete.iter().map(|completion| (completion.id, (step.worker, completion.token)));
                rows.completed = completed.collect();
            }
            Command::Add(Add { age, .. }) if self.flaw == Flaw::AddsLate => *age = Micros::ZERO,
            _ => {}
        }
        let reply = rules::apply(&mut rows, self.clock.now(), &command);
        kept.cost = (rows.calls, rows.found);
        kept.tables.finish(reply.is_ok() || self.flaw == Flaw::UndoesNothing);
        reply
    }

    async fn queues(&self) -> Result<Vec<QueueName>, StateError> {
        let queues = self.kept();
        Ok(queues.iter().filter(|(_, kept)| !kept.tables.is_empty()).map(|(name, _)| name.clone()).collect())
    }

    async fn changes(&self, _: &QueueName) -> Result<Changes, StateError> {
        Err(StateError::new(StateErrorKind::Unsupported, "this store cannot be watched"))
    }
}
