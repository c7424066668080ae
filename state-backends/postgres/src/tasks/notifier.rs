//! Notifies watchers after the commit and in a separate transaction, since notifications make
//! commits wait for one another. After a quiet period, the first notification follows its commit in
//! the same message. Later ones are batched.

use std::{
    collections::BTreeSet,
    mem::take,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use interval_queue_contract::QueueName;

use crate::PostgresStore;

const BATCH_INTERVAL: Duration = Duration::from_millis(10);

#[derive(Clone)]
pub(super) struct Notifier {
    store: PostgresStore,
    pending: Arc<Mutex<PendingNotifications>>,
}

#[derive(Default)]
struct PendingNotifications {
    queues: BTreeSet<String>,
    /// A task will send the pending notifications.
    is_scheduled: bool,
}

impl Notifier {
    pub(super) fn new(store: &PostgresStore) -> Self {
        Self { store: store.clone(), pending: Arc::default() }
    }

    /// The notification to send right after a commit. `None`: another was sent just now; call
    /// [`notify_later`](Self::notify_later) once the command is stored. Watchers also poll, so a
    /// lost notification only delays them.
    pub(super) fn claim_notification(&self, queue: &QueueName) -> Option<String> {
        let is_first = self.begin(&mut self.pending());
        is_first.then(|| self.store.notification_sql(&[queue.as_str().to_owned()]))
    }

    pub(super) fn notify_later(&self, queue: &QueueName) {
        let mut pending = self.pending();
        pending.queues.insert(queue.as_str().to_owned());
        self.begin(&mut pending);
    }

    /// Returns false if a batch had been started.
    fn begin(&self, pending: &mut PendingNotifications) -> bool {
        if pending.is_scheduled {
            return false;
        }
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return false };
        pending.is_scheduled = true;
        let task = NotifierTask(self.clone());
        drop(runtime.spawn(async move { task.run().await }));
        true
    }

    fn pending(&self) -> MutexGuard<'_, PendingNotifications> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sends batches until no notification is pending, or until the runtime ends.
struct NotifierTask(Notifier);

impl NotifierTask {
    async fn run(&self) {
        loop {
            tokio::time::sleep(BATCH_INTERVAL).await;
            let Some(queues) = self.take() else { return };
            if let Err(error) = self.0.store.notify_tasks(&queues).await {
                tracing::debug!(
                    error = tracing::field::display(error),
                    "watchers were not notified of new tasks"
                );
            }
        }
    }

    fn take(&self) -> Option<Vec<String>> {
        let mut pending = self.0.pending();
        pending.is_scheduled = !pending.queues.is_empty();
        pending.is_scheduled.then(|| take(&mut pending.queues).into_iter().collect())
    }
}

impl Drop for NotifierTask {
    fn drop(&mut self) {
        self.0.pending().is_scheduled = false;
    }
}
