//! Nudges of those who watch: after the commit and apart from it, since a notification makes commits wait for one
//! another; at most one for a queue in a while.

use std::{
    collections::BTreeSet,
    mem::take,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use interval_queue_contract::QueueName;

use crate::PostgresStore;

/// What comes within this time is told at once.
const PAUSE: Duration = Duration::from_millis(10);

/// What is to be told.
#[derive(Clone)]
pub(super) struct News {
    store: PostgresStore,
    untold: Arc<Mutex<Untold>>,
}

#[derive(Default)]
struct Untold {
    queues: BTreeSet<String>,
    /// Whether somebody is at it.
    is_told: bool,
}

impl News {
    pub(super) fn new(store: &PostgresStore) -> Self {
        Self { store: store.clone(), untold: Arc::default() }
    }

    /// A hint: if it gets lost, those who watch look all the same, later.
    pub(super) fn tell(&self, queue: &QueueName) {
        let mut untold = self.untold.lock().unwrap_or_else(PoisonError::into_inner);
        untold.queues.insert(queue.as_str().to_owned());
        if untold.is_told {
            return;
        }
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            untold.is_told = true;
            let news = Telling(self.clone());
            drop(runtime.spawn(async move { news.run().await }));
        }
    }
}

/// Tells until nothing is left, or the runtime ends.
struct Telling(News);

impl Telling {
    async fn run(&self) {
        while let Some(queues) = self.take() {
            if let Err(error) = self.0.store.tell_tasks(queues).await {
                tracing::debug!(error = tracing::field::display(error), "nobody was told of new tasks");
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    fn take(&self) -> Option<Vec<String>> {
        let mut untold = self.0.untold.lock().unwrap_or_else(PoisonError::into_inner);
        untold.is_told = !untold.queues.is_empty();
        untold.is_told.then(|| take(&mut untold.queues).into_iter().collect())
    }
}

impl Drop for Telling {
    fn drop(&mut self) {
        self.0.untold.lock().unwrap_or_else(PoisonError::into_inner).is_told = false;
    }
}
