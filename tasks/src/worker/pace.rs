//! Starts at a pace: a place in the line is taken for a task in hand, and what starts in it is chosen shortly before
//! its slot, among all that is ready by then.

use std::{sync::Arc, time::Duration};

use futures::{FutureExt, StreamExt, future::RemoteHandle, stream::FuturesUnordered};
use interval_queue::{IntervalQueue, Weighed};

use super::{core::Core, run};
use crate::host;

/// How long after a failure of the pace it is tried again.
const AGAIN: Duration = Duration::from_secs(1);

/// Places in the line that are waited for, each by a task of its own that ends with its handle.
pub(super) type Pulls = FuturesUnordered<RemoteHandle<()>>;

/// Has a place waited for by each task in hand.
pub(super) fn pull(core: &Arc<Core>, pulls: &mut Pulls) {
    while let Some(Some(())) = pulls.next().now_or_never() {}
    let Some(pace) = &core.queue.pace else { return };
    let weights: Vec<_> = core.machine().held.hand.values().map(|leased| leased.task.weight).collect();
    for weight in weights.into_iter().skip(pulls.len()) {
        let (task, handle) = pull_one(core.clone(), pace.clone(), weight).remote_handle();
        core.host().spawn(task.boxed());
        pulls.push(handle);
    }
}

async fn pull_one(core: Arc<Core>, pace: IntervalQueue, weight: u32) {
    let pulled = pace.pull(|| choose(&core)).weight(weight).await;
    if let Err(error) = pulled {
        core.queue.shared.telemetry.unpaced(&error);
        host::sleep(&**core.host(), AGAIN).await;
    }
}

/// Takes the most urgent task of now; none: there is none any more, and the place is given up.
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
    let leased = machine.start(core.now())?;
    Some(Weighed { weight: leased.task.weight, job: run::begin(core, leased) })
}

/// Has so many tasks in hand that one is there when a slot comes: few, since what is in hand nobody else can start.
pub(super) fn keep_ahead(core: &Core, pace: &IntervalQueue, round_trip: Duration) {
    // One to lease it, one to exchange it, and as much again for the pace itself.
    let trips = round_trip.as_nanos().saturating_mul(4);
    let ahead = trips.div_ceil(pace.interval().as_nanos().max(1)).saturating_add(1);
    core.machine().identity.paced = Some(u32::try_from(ahead).unwrap_or(u32::MAX).min(MOST_AHEAD));
}

/// The most that are in hand.
const MOST_AHEAD: u32 = 100;
