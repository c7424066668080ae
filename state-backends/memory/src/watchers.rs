//! Notifications of changed queues.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use futures::stream;
use interval_queue_contract::{Changes, QueueName};
use tokio::sync::watch::Sender;

#[derive(Debug, Default)]
pub(crate) struct Watchers(Mutex<BTreeMap<QueueName, Sender<()>>>);

impl Watchers {
    pub(crate) fn watch(&self, queue: &QueueName) -> Changes {
        let mut watched = self.lock();
        // Drops the senders of queues without watchers, which would accumulate.
        watched.retain(|_, sender| !sender.is_closed());
        let receiver = watched.entry(queue.clone()).or_default().subscribe();
        Box::pin(stream::unfold(receiver, async |mut receiver| {
            receiver.changed().await.ok().map(|()| ((), receiver))
        }))
    }

    pub(crate) fn notify(&self, queue: &QueueName) {
        if let Some(sender) = self.lock().get(queue) {
            sender.send_replace(());
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<QueueName, Sender<()>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
