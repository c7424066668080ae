//! The lease of this worker: read from every answered poll, and sent to the guards. Outages of the
//! store are printed.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use interval_queue::{
    QueueName, StateError, StateErrorKind,
    contract::Changes,
    task_contract::{Command, Reply, TaskStore},
};
use tokio::sync::watch;

use crate::{
    child::guard::Lease,
    clock,
    exit::{Failure, report},
    outage::StoreOutages,
};

/// A store of tasks whose replies are observed.
#[derive(Debug)]
pub(crate) struct Watched {
    store: Arc<dyn TaskStore>,
    lease: watch::Sender<Lease>,
    /// The outages of the store, shared by all queues.
    outages: Arc<Mutex<StoreOutages>>,
}

impl Watched {
    pub(crate) fn new(
        store: Arc<dyn TaskStore>,
        lease: watch::Sender<Lease>,
        outages: Arc<Mutex<StoreOutages>>,
    ) -> Self {
        Self { store, lease, outages }
    }

    /// Prints the beginning and the end of an outage, if a line is due. Only polls count: a store
    /// with a full disk may still answer reads.
    fn report(&self, sent: tokio::time::Instant, error: Option<&StateError>) {
        let mut outages = self.outages.lock().unwrap_or_else(PoisonError::into_inner);
        let line = match error {
            Some(error) => outages.failed(&Failure::from(error.clone()), sent),
            None => outages.answered(),
        };
        match (line, error) {
            (Some(line), Some(_)) => report(&format!("{line}; trying again")),
            (Some(line), None) => report(&line),
            (None, _) => {}
        }
    }
}

/// A poll in progress. The worker drops it if it gets no answer in time.
struct UnderWay<'a> {
    watched: &'a Watched,
    sent: tokio::time::Instant,
    is_answered: bool,
}

impl UnderWay<'_> {
    fn end(mut self, error: Option<&StateError>) {
        self.is_answered = true;
        self.watched.report(self.sent, error);
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        if !self.is_answered {
            let error = StateError::new(StateErrorKind::TimedOut, "it does not answer");
            self.watched.report(self.sent, Some(&error));
        }
    }
}

#[async_trait]
impl TaskStore for Watched {
    async fn apply(&self, queue: &QueueName, command: Command) -> Result<Reply, StateError> {
        let Command::Step(step) = &command else { return self.store.apply(queue, command).await };
        let lease = Lease::new(step.lease.to_duration());
        let under_way = UnderWay { watched: self, sent: clock::now(), is_answered: false };
        let reply = self.store.apply(queue, command).await;
        if matches!(&reply, Ok(Reply::Stepped(stepped)) if !stepped.resync) {
            self.lease.send_replace(lease);
        }
        under_way.end(reply.as_ref().err());
        reply
    }

    async fn queues(&self) -> Result<Vec<QueueName>, StateError> {
        self.store.queues().await
    }

    async fn changes(&self, queue: &QueueName) -> Result<Changes, StateError> {
        self.store.changes(queue).await
    }
}
