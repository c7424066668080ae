//! Starts of tasks in a queue with a rate. Each held task requests a slot; shortly before it, the
//! most urgent ready task is chosen for it (late binding).

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use futures::{
    FutureExt, StreamExt,
    future::{BoxFuture, RemoteHandle},
    stream::FuturesUnordered,
};
use interval_queue::{IntervalQueue, Weighed};

use super::{
    core::Core,
    failure::{self, WorkerFailure},
    outage::is_of_the_store,
    run,
};
use crate::{error::Error, host};

const RETRY_DELAY: Duration = Duration::from_secs(1);

/// Each awaited by a spawned task. Dropping a handle gives its slot up.
pub(super) type SlotRequests = FuturesUnordered<RemoteHandle<()>>;

/// Number and result of a lookup. `None`: the queue has no rate.
type FoundRate = (u64, Result<Option<IntervalQueue>, Error>);

#[derive(Default)]
pub(super) struct RateLookup(Option<BoxFuture<'static, FoundRate>>);

impl RateLookup {
    /// Or returns when a lookup will be due.
    pub(super) fn begin(&mut self, core: &Arc<Core>) -> Option<Instant> {
        let now = core.now();
        let mut machine = core.machine();
        let due = machine.lookup_due(now)?;
        if due > now {
            return Some(due);
        }
        let number = machine.begin_lookup(now);
        drop(machine);
        let core = core.clone();
        self.0 = Some(Box::pin(async move {
            let found = core.queue.shared.rate.refresh(&**core.host()).await;
            (number, found)
        }));
        None
    }

    /// Its result is applied.
    pub(super) async fn done(&mut self, core: &Core) {
        let (number, found) = match &mut self.0 {
            Some(lookup) => lookup.await,
            None => std::future::pending().await,
        };
        self.0 = None;
        let telemetry = &core.queue.shared.telemetry;
        match found {
            Ok(found) => {
                if core.machine().finish_lookup(number, found.is_some(), core.now()) {
                    telemetry.rate(found.as_ref());
                }
            }
            Err(error) => {
                core.machine().fail_lookup(number, core.now(), core.host().random());
                failed(core, error);
            }
        }
    }
}

/// Unless the whole store fails: that is an outage of its own.
fn failed(core: &Core, error: Error) {
    let now = core.now();
    if core.outages().current(now).is_some() {
        core.unpaced().answered(now);
        return;
    }
    let is_of_the_store = is_of_the_store(&error);
    if is_of_the_store {
        core.machine().notify();
        core.wake.notify_one();
    }
    if core.unpaced().failed(is_of_the_store, now, now) {
        core.queue.shared.telemetry.unpaced(&error);
        failure::report(core, WorkerFailure::Rate { error });
    }
}

/// Without a rate it does nothing.
pub(super) fn request_slots(core: &Arc<Core>, requests: &mut SlotRequests) {
    while let Some(Some(())) = requests.next().now_or_never() {}
    let Some(pace) = core.queue.shared.rate.current() else { return };
    let weights: Vec<_> = core.machine().held.leased.values().map(|leased| leased.task.weight).collect();
    for weight in weights.into_iter().skip(requests.len()) {
        let (task, handle) = request_slot(core.clone(), pace.clone(), weight).remote_handle();
        core.host().spawn(task.boxed());
        requests.push(handle);
    }
}

async fn request_slot(core: Arc<Core>, pace: IntervalQueue, weight: u32) {
    let Err(error) = pace.pull(|| choose(&core)).weight(weight).await else {
        core.unpaced().answered(core.now());
        return;
    };
    failed(&core, error.into());
    host::sleep(&**core.host(), RETRY_DELAY).await;
}

/// `None`: no task can start, and the slot is given up.
async fn choose(core: &Arc<Core>) -> Option<Weighed<impl Future<Output = ()> + Send + use<>>> {
    let number = core.machine().exchange();
    core.wake.notify_one();
    loop {
        let mut answered = std::pin::pin!(core.answered.notified());
        answered.as_mut().enable();
        {
            let machine = core.machine();
            if machine.stopping.is_some() {
                return None;
            }
            if machine.exchanged() >= number {
                break;
            }
        }
        answered.await;
    }
    let mut machine = core.machine();
    let leased = machine.start_in_slot(core.now())?;
    Some(Weighed { weight: leased.task.weight, job: run::begin(core, leased) })
}

/// Few tasks: no other worker can start them.
pub(super) fn keep_ahead(core: &Core, round_trip: Duration) {
    let Some(pace) = core.queue.shared.rate.current() else { return };
    // One to lease, one to exchange, and two for the slot.
    let trips = round_trip.as_nanos().saturating_mul(4);
    let ahead = trips.div_ceil(pace.interval().as_nanos().max(1)).saturating_add(1);
    let ahead = u32::try_from(ahead).unwrap_or(u32::MAX).min(MAX_IN_HAND);
    if let Some(current) = &mut core.machine().pace.ahead {
        *current = ahead;
    }
}

const MAX_IN_HAND: u32 = 100;
