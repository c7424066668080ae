//! Every store does what the rules do.

use std::{env, sync::Arc};

use async_trait::async_trait;
use interval_queue_contract::{Changes, QueueName, StateError};
use interval_queue_memory::MemoryTasks;
use interval_queue_task_contract::{Command, Reply, TaskStore};

use crate::{
    client::{Handles, unique},
    fuzzer::{Target, fuzz_on},
};

/// The environment variable with the first seed.
const SEED: &str = "INTERVAL_QUEUE_SEED";
/// The environment variable with the number of runs. Default: 1, some thousand commands.
const RUNS: &str = "INTERVAL_QUEUE_PLAYS";

/// Thousands of random commands are answered and stored exactly as by the rules, and all promises
/// hold: see [`fuzz`](crate::fuzzer::fuzz()). `INTERVAL_QUEUE_SEED` (default 0) is the first seed,
/// `INTERVAL_QUEUE_PLAYS` (default 1) the number of seeds. Takes ten seconds on a store with files:
/// each command is a transaction, and all rows are compared after it.
pub async fn commands_follow_the_rules(handles: Handles) {
    let clock = handles.clock.expect("this check needs a clock that can be set: see Handles::clock");
    let number = |name, usual| env::var(name).map_or(usual, |text| text.parse::<u64>().expect("a number"));
    let (first, runs) = (number(SEED, 0), number(RUNS, 1));
    for seed in first..first + runs {
        let reading = clock.clone();
        let reference = MemoryTasks::with_clock(move || reading.now());
        let twin = Twin { store: handles.one.clone(), other: handles.other.clone(), reference };
        let target = Target { store: Arc::new(twin), clock: clock.clone(), copies: None };
        let queue = QueueName::new(format!("fuzz-{seed}-{}", unique())).unwrap();
        if let Err(broken) = fuzz_on(queue, seed, &target).await {
            panic!("{SEED}={seed}: {broken}");
        }
    }
}

/// A store and the rules, compared command by command.
#[derive(Debug)]
struct Twin {
    store: Arc<dyn TaskStore>,
    other: Arc<dyn TaskStore>,
    reference: MemoryTasks,
}

#[async_trait]
impl TaskStore for Twin {
    async fn apply(&self, queue: &QueueName, command: Command) -> Result<Reply, StateError> {
        // Reads use the other handle.
        let store = if command.is_read() { &self.other } else { &self.store };
        let found = store.apply(queue, command.clone()).await;
        let expected = self.reference.apply(queue, command.clone()).await;
        let kind = |outcome: &Result<Reply, StateError>| outcome.as_ref().err().map(StateError::kind);
        if found.as_ref().ok() != expected.as_ref().ok() || kind(&found) != kind(&expected) {
            panic!("{command:?}\nthe rules reply {expected:?}\nand the store  {found:?}");
        }
        found
    }

    async fn queues(&self) -> Result<Vec<QueueName>, StateError> {
        self.store.queues().await
    }

    async fn changes(&self, queue: &QueueName) -> Result<Changes, StateError> {
        self.store.changes(queue).await
    }
}
