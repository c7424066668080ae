//! The lease of a worker, as its guards need it, and lines about outages of its store.

use std::sync::{Arc, Mutex, PoisonError};

use interval_queue_tasks::WorkerConnection;
use tokio::{sync::watch, time::Instant};

use crate::{
    child::guard::{self, Lease},
    clock::now,
    exit::report,
    outage::StoreOutages,
};

/// Sends each renewed lease to `leases` while the worker lives. `outages`: of the store, shared by
/// all queues.
pub(super) async fn follow(
    mut connection: watch::Receiver<WorkerConnection>,
    leases: watch::Sender<Lease>,
    outages: Arc<Mutex<StoreOutages>>,
) {
    // When the last poll was sent, by both clocks: only the guards' clock advances while the host
    // sleeps.
    let mut polled = None;
    while connection.changed().await.is_ok() {
        let WorkerConnection { sent, lease, failing, .. } = connection.borrow_and_update().clone();
        if let Some(sent) = sent
            && polled.is_none_or(|(before, _)| before != sent)
        {
            let passed = now().saturating_duration_since(Instant::from_std(sent));
            polled = Some((sent, guard::now() - passed));
        }
        if let (Some(lease), Some((sent, at))) = (lease, polled)
            && lease.since == sent
        {
            leases.send_replace(Lease::new(at, lease.length));
        }
        let is_answered = lease.is_some_and(|lease| Some(lease.since) == sent);
        let mut outages = outages.lock().unwrap_or_else(PoisonError::into_inner);
        match failing {
            Some(failing) => {
                let since = Instant::from_std(failing.since);
                if let Some(line) = outages.failed(&failing.error.into(), since) {
                    report(&format!("{line}; trying again"));
                }
            }
            None if is_answered => outages.answered().iter().for_each(|line| report(line)),
            None => {}
        }
    }
}
