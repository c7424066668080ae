//! The queue that the command line names, read and changed without being a shard.

use std::{
    future::Future,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use interval_queue::{Error, Operator, Operators, Snapshot, Store, connect};
use tokio::time::{sleep, timeout};

use crate::{
    args::{StoreArgs, Target},
    clock::now,
    exit::{Failure, NOINPUT, UNAVAILABLE, report},
    outage::StoreOutages,
};

/// Longer than any backend retries by itself.
const STORE_TIMEOUT: Duration = Duration::from_secs(15);
const RETRY_INTERVAL: Duration = Duration::from_millis(500);

static OPENED_STORES: Mutex<Vec<Store>> = Mutex::new(Vec::new());

fn opened() -> MutexGuard<'static, Vec<Store>> {
    OPENED_STORES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// So that an SQLite database is in a single file. Gives up after `limit`: stored data is safe.
pub(crate) async fn close_stores(limit: Duration) {
    let stores = std::mem::take(&mut *opened());
    let close = async {
        for store in stores {
            let _ = store.close().await;
        }
    };
    let _ = timeout(limit, close).await;
}

impl StoreArgs {
    pub(crate) async fn operators(&self) -> Result<Operators, Failure> {
        bounded(async { Ok(Operators::open(self.opened().await?).await?) }).await
    }

    pub(crate) async fn store(&self) -> Result<Store, Failure> {
        bounded(self.opened()).await
    }

    async fn opened(&self) -> Result<Store, Failure> {
        let store = connect(&self.url).await?;
        let mut opened = opened();
        if let Some(warning) = store.warning()
            && !opened.iter().any(|other| other.warning() == Some(warning))
        {
            report(&format!("warning: {warning}"));
        }
        opened.push(store.clone());
        Ok(store)
    }
}

impl Target {
    /// The queue need not exist.
    pub(crate) async fn operator(&self) -> Result<Operator, Failure> {
        Ok(self.store.operators().await?.of(&self.queue))
    }

    /// `None`: it does not exist.
    pub(crate) async fn snapshot(&self) -> Result<Option<Snapshot>, Failure> {
        snapshot(&self.operator().await?).await
    }

    pub(crate) fn missing(&self) -> Failure {
        let queue = self.queue.as_str();
        let way_out = "see `interval-queue list`, or create it with `interval-queue run --every`";
        Failure::new(NOINPUT, format!("there is no queue {queue:?} in this store: {way_out}"))
    }

    pub(crate) async fn changed(
        &self,
        change: impl Future<Output = Result<Snapshot, Error>>,
    ) -> Result<Snapshot, Failure> {
        match bounded(async { Ok(change.await?) }).await {
            Err(failure) if failure.code == NOINPUT => Err(self.missing()),
            other => other,
        }
    }
}

/// `None`: it does not exist.
pub(crate) async fn snapshot(operator: &Operator) -> Result<Option<Snapshot>, Failure> {
    bounded(async { Ok(operator.snapshot().await?) }).await
}

/// A mount that hangs must not hang the program.
pub(crate) async fn bounded<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    timeout(STORE_TIMEOUT, work).await.unwrap_or_else(|_| {
        let message = format!("the store did not answer within {STORE_TIMEOUT:?}");
        Err(Failure { passes: true, ..Failure::new(UNAVAILABLE, message) })
    })
}

/// While the failure may pass by itself, up to `limit`. Prints outages of the store at `url`.
pub(crate) async fn retry<T>(
    url: &str,
    limit: Duration,
    mut attempt: impl AsyncFnMut() -> Result<T, Failure>,
) -> Result<T, Failure> {
    let began = now();
    let mut outages = StoreOutages::of(url);
    loop {
        let sent = now();
        match attempt().await {
            Err(failure) if failure.passes && now().saturating_duration_since(began) < limit => {
                if let Some(line) = outages.failed(&failure, sent) {
                    report(&format!("{line}; trying again"));
                }
                sleep(RETRY_INTERVAL).await;
            }
            done => {
                if let Some(line) = outages.answered().filter(|_| done.is_ok()) {
                    report(&line);
                }
                return done;
            }
        }
    }
}
