//! Until when this worker has its tasks: seen in every step that the store answers, and told to the guards.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use interval_queue::{
    QueueName, StateError,
    contract::Changes,
    task_contract::{Command, Reply, TaskStore},
};
use tokio::sync::watch;

use crate::{
    exit::{Failure, say},
    guard::{Instant, Order, now},
};

/// A lease, which counts from when it was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lease {
    asked: Instant,
    length: Duration,
}

impl Lease {
    pub(crate) fn new(length: Duration) -> Self {
        Self { asked: now(), length }
    }

    /// What it says to a guard: a quarter of it is left at SIGTERM and an eighth at SIGKILL, so that CMD has ended
    /// before the store can give its task to somebody else.
    pub(crate) fn order(self) -> Order {
        let Self { asked, length } = self;
        Order::Lease { term: asked + length / 4 * 3, kill: asked + length / 8 * 7 }
    }
}

/// A store of tasks whose answers are seen.
#[derive(Debug)]
pub(crate) struct Watched {
    store: Arc<dyn TaskStore>,
    lease: watch::Sender<Lease>,
    /// Whether it did not answer last: of all queues of the place.
    silent: Arc<Mutex<bool>>,
}

impl Watched {
    pub(crate) fn new(
        store: Arc<dyn TaskStore>,
        lease: watch::Sender<Lease>,
        silent: Arc<Mutex<bool>>,
    ) -> Self {
        Self { store, lease, silent }
    }

    /// Says when the store stops answering, and when it answers again.
    fn tell(&self, failure: Option<Failure>) {
        let mut silent = self.silent.lock().unwrap_or_else(PoisonError::into_inner);
        match (failure, *silent) {
            (Some(failure), false) => say(&format!("state unreachable: {}; trying again", failure.message)),
            (None, true) => say("the state answers again"),
            (Some(_), true) | (None, false) => return,
        }
        *silent = !*silent;
    }
}

#[async_trait]
impl TaskStore for Watched {
    async fn apply(&self, queue: &QueueName, command: Command) -> Result<Reply, StateError> {
        let lease = match &command {
            Command::Step(step) => Some(Lease::new(step.lease.to_duration())),
            _ => None,
        };
        let reply = self.store.apply(queue, command).await;
        match &reply {
            Ok(reply) => {
                if let (Some(lease), Reply::Stepped(stepped)) = (lease, reply)
                    && !stepped.restate
                {
                    self.lease.send_replace(lease);
                }
                self.tell(None);
            }
            Err(error) if error.is_retryable() => self.tell(Some(Failure::from(error.clone()))),
            Err(_) => {}
        }
        reply
    }

    async fn queues(&self) -> Result<Vec<QueueName>, StateError> {
        self.store.queues().await
    }

    async fn changes(&self, queue: &QueueName) -> Result<Changes, StateError> {
        self.store.changes(queue).await
    }
}
