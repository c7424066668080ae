//! Who wants to hear that a queue was changed.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use futures::channel::mpsc::{Receiver, Sender, channel};
use interval_queue_contract::QueueName;

/// A way to each watcher, with room for one item.
#[derive(Debug, Default)]
pub(crate) struct Watchers(Mutex<BTreeMap<QueueName, Vec<Sender<()>>>>);

impl Watchers {
    pub(crate) fn watch(&self, queue: &QueueName) -> Receiver<()> {
        let (sender, receiver) = channel(0);
        let mut watchers = self.lock();
        // Otherwise those of queues that nobody changes would gather.
        watchers.retain(|_, of_queue| {
            of_queue.retain(|watcher| !watcher.is_closed());
            !of_queue.is_empty()
        });
        watchers.entry(queue.clone()).or_default().push(sender);
        receiver
    }

    pub(crate) fn tell(&self, queue: &QueueName) {
        for watcher in self.lock().get_mut(queue).into_iter().flatten() {
            // A watcher with an item that it has not taken yet needs no second one.
            let _ = watcher.try_send(());
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<QueueName, Vec<Sender<()>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
