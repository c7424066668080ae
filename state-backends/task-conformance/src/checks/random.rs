//! The rules: whatever the store, a command does what they do.

use std::{env, sync::Arc};

use async_trait::async_trait;
use interval_queue_contract::{Changes, QueueName, StateError};
use interval_queue_memory::MemoryTasks;
use interval_queue_task_contract::{Command, Reply, TaskStore};

use crate::{
    client::{Handles, unique},
    play::{Stage, play_on},
};

/// Names the first play. Another number explores others.
const SEED: &str = "INTERVAL_QUEUE_SEED";
/// How many plays there are: 1 by default, which is some thousand commands.
const PLAYS: &str = "INTERVAL_QUEUE_PLAYS";

/// Thousands of random commands are replied to and stored as the rules have it, letter by letter, and every promise
/// holds: see [`play`](crate::play::play()).
///
/// The play follows from the environment variable `INTERVAL_QUEUE_SEED`, 0 by default; `INTERVAL_QUEUE_PLAYS`
/// asks for more than one, each by the next seed.
pub async fn commands_follow_the_rules(handles: Handles) {
    let clock = handles.clock.expect("this check needs a clock that can be set: see Handles::clock");
    let number = |name, usual| env::var(name).map_or(usual, |text| text.parse::<u64>().expect("a number"));
    let (first, plays) = (number(SEED, 0), number(PLAYS, 1));
    for seed in first..first + plays {
        let reading = clock.clone();
        let reference = MemoryTasks::with_clock(move || reading.now());
        let twin = Twin { store: handles.one.clone(), other: handles.other.clone(), reference };
        let stage = Stage { store: Arc::new(twin), clock: clock.clone(), copies: None };
        let queue = QueueName::new(format!("play-{seed}-{}", unique())).unwrap();
        if let Err(broken) = play_on(queue, seed, &stage).await {
            panic!("{SEED}={seed}: {broken}");
        }
    }
}

/// A store and the rules beside it, which are held to say the same.
#[derive(Debug)]
struct Twin {
    store: Arc<dyn TaskStore>,
    other: Arc<dyn TaskStore>,
    reference: MemoryTasks,
}

#[async_trait]
impl TaskStore for Twin {
    async fn apply(&self, queue: &QueueName, command: Command) -> Result<Reply, StateError> {
        // What the one has stored the other finds.
        let store = if command.is_read() { &self.other } else { &self.store };
        let found = store.apply(queue, command.clone()).await;
        let retained = self.reference.apply(queue, command.clone()).await;
        let kind = |outcome: &Result<Reply, StateError>| outcome.as_ref().err().map(StateError::kind);
        if found.as_ref().ok() != retained.as_ref().ok() || kind(&found) != kind(&retained) {
            panic!("{command:?}\nthe rules reply {retained:?}\nand the store  {found:?}");
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
