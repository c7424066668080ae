//! Nudges of those who watch: after the commit and apart from it, since a notification makes commits wait for one
//! another. The first after a quiet while follows its commit in the same message; later ones are sent together.

use std::{
    collections::BTreeSet,
    mem::take,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use interval_queue_contract::QueueName;

use crate::PostgresStore;

/// What comes within this time is told together.
const PAUSE: Duration = Duration::from_millis(10);

/// What is to be told.
#[derive(Clone)]
pub(super) struct News {
    store: PostgresStore,
    unnotified: Arc<Mutex<Unnotified>>,
}

#[derive(Default)]
struct Unnotified {
    queues: BTreeSet<String>,
    /// Whether somebody tells it after the pause.
    is_notified: bool,
}

impl News {
    pub(super) fn new(store: &PostgresStore) -> Self {
        Self { store: store.clone(), unnotified: Arc::default() }
    }

    /// The notification that follows a commit. `None`: one was sent just now, and this one is to be [sent](Self::tell)
    /// later, once the command is stored. If it gets lost, watchers poll all the same.
    pub(super) fn notice(&self, queue: &QueueName) -> Option<String> {
        let is_first = self.begin(&mut self.unnotified());
        is_first.then(|| self.store.telling_tasks(&[queue.as_str().to_owned()]))
    }

    /// Has it told soon.
    pub(super) fn tell(&self, queue: &QueueName) {
        let mut unnotified = self.unnotified();
        unnotified.queues.insert(queue.as_str().to_owned());
        self.begin(&mut unnotified);
    }

    /// Whether there is a pause from now on, and what is untold by then is told.
    fn begin(&self, unnotified: &mut Unnotified) -> bool {
        if unnotified.is_notified {
            return false;
        }
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return false };
        unnotified.is_notified = true;
        let news = Telling(self.clone());
        drop(runtime.spawn(async move { news.run().await }));
        true
    }

    fn unnotified(&self) -> MutexGuard<'_, Unnotified> {
        self.unnotified.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tells until nothing is left, or the runtime ends.
struct Telling(News);

impl Telling {
    async fn run(&self) {
        loop {
            tokio::time::sleep(PAUSE).await;
            let Some(queues) = self.take() else { return };
            if let Err(error) = self.0.store.tell_tasks(&queues).await {
                tracing::debug!(error = tracing::field::display(error), "nobody was told of new tasks");
            }
        }
    }

    fn take(&self) -> Option<Vec<String>> {
        let mut unnotified = self.0.unnotified();
        unnotified.is_notified = !unnotified.queues.is_empty();
        unnotified.is_notified.then(|| take(&mut unnotified.queues).into_iter().collect())
    }
}

impl Drop for Telling {
    fn drop(&mut self) {
        self.0.unnotified().is_notified = false;
    }
}
